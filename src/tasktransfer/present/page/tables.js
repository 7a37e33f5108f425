// Tables: sorted by a click on a title, filtered by words, or reduced to significant rows. Frames
// of wide tables are marked.
"use strict";
(() => {
  const LONG = 20;
  const ALPHABET = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // The first number in a cell, as printed: "−1.2 [−3, 0]" is −1.2, "< 0.001" is 0.001.
  function number(text) {
    const found = /[−+-]?[\d,]*\.?\d+/.exec(text);
    return found ? Number(found[0].replace("−", "-").replaceAll(",", "")) : null;
  }

  function sort(table, rows, head, place) {
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const turned = down ? -1 : 1;
    const isNumber = head.classList.contains("number");
    const key = (row) => {
      const text = row.cells[place].textContent;
      return isNumber ? number(text) : text;
    };
    const compare = (a, b) => {
      const [first, second] = [key(a), key(b)];
      if (first === null || second === null) return (first === null) - (second === null);
      return turned * (isNumber ? first - second : ALPHABET.compare(first, second));
    };
    const body = element("tbody", {}, ...rows.toSorted(compare));
    for (const one of [...table.tBodies]) one.remove();
    table.append(body);
  }

  function addTools(table, rows) {
    const places = [...table.tHead.rows[0].cells].flatMap((head, place) =>
      /^q\b/.test(head.textContent) ? [place] : [],
    );
    const title = table.parentElement.getAttribute("aria-label");
    const words = element("input", { type: "search", "aria-label": `filter rows of ${title}` });
    const only = element("input", { type: "checkbox" });
    const count = element("span", { role: "status" });
    const isSignificant = (row) =>
      places.some((place) => {
        const q = number(row.cells[place].textContent);
        return q !== null && q <= 0.05;
      });
    const filter = () => {
      const wanted = words.value.toLowerCase().split(/\s+/);
      let shown = 0;
      for (const row of rows) {
        const names = [...row.querySelectorAll("abbr")].map((one) => one.title);
        const text = [row.textContent, ...names].join(" ").toLowerCase();
        const matches = wanted.every((word) => text.includes(word));
        row.hidden = !matches || (only.checked && !isSignificant(row));
        shown += !row.hidden;
      }
      count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} rows`;
    };
    words.addEventListener("input", filter);
    only.addEventListener("change", filter);
    const tools = [element("label", {}, "Filter ", words)];
    if (places.length) tools.push(element("label", {}, only, " significant only (q ≤ 0.05)"));
    table.parentElement.before(element("div", { class: "tools" }, ...tools, count));
  }

  const frames = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      target.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1);
    }
  });
  for (const frame of document.querySelectorAll(".scroll")) frames.observe(frame);

  for (const table of document.querySelectorAll(".scroll > table:not(.grouped)")) {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      if (!head.textContent) return;
      const button = element("button", { type: "button" }, ...head.childNodes);
      button.addEventListener("click", () => sort(table, rows, head, place));
      head.append(button);
    });
    if (rows.length > LONG) addTools(table, rows);
  }
})();
