// The command that traces a cell of a table: shown when the cell is clicked, or on Enter. Each table
// is one stop of the Tab key; arrow keys move between its cells.
"use strict";
(() => {
  const bar = document.getElementById("command");
  const cells = (table) => Array.from(table.querySelectorAll("td[data-explain]"));
  const show = (cell) => {
    const code = document.createElement("code");
    code.textContent = `${bar.dataset.explain.replace("TABLE WORDS", cell.dataset.explain)}`;
    bar.replaceChildren("Source of this number: ", code);
    bar.hidden = false;
  };
  const focus = (from, to) => {
    if (!to) return;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  const beside = (cell, key) => {
    if (key === "ArrowLeft" || key === "ArrowRight") {
      let next = cell;
      do next = key === "ArrowLeft" ? next.previousElementSibling : next.nextElementSibling;
      while (next && !next.dataset.explain);
      return next;
    }
    const row = cell.parentElement;
    const rows = Array.from(cell.closest("table").querySelectorAll("tbody tr"));
    const place = rows.indexOf(row) + (key === "ArrowUp" ? -1 : 1);
    const other = rows[place] && rows[place].children[cell.cellIndex];
    return other && other.dataset.explain !== undefined ? other : null;
  };
  for (const table of document.querySelectorAll("table")) {
    const traced = cells(table);
    traced.forEach((cell, place) => {
      cell.tabIndex = place ? -1 : 0;
    });
    table.addEventListener("click", (event) => {
      const cell = event.target.closest("td[data-explain]");
      if (cell) show(cell);
    });
    table.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td[data-explain]");
      if (!cell) return;
      if (event.key === "Enter") show(cell);
      else if (event.key.startsWith("Arrow")) {
        focus(cell, beside(cell, event.key));
        event.preventDefault();
      }
    });
  }
})();
