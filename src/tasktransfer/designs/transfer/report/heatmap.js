// The interactive heatmap as the reader sees and works it: drawing, pointing, typing. The numbers,
// colours and texts come ready-made from Python (grid.py). No library, no network.
"use strict";

(() => {
  const { state, dataset, cellAt } = model;
  const { spaced } = words;
  const { element } = details;
  const find = (id) => document.getElementById(id);
  const table = find("heatmap");
  const detail = find("detail");
  const records = find("records");

  let current = { source: null, target: null }; // the place that the Tab key enters at
  let pinned = null; // the cell whose records are shown

  // --- drawing ---

  function fillOrder(axis) {
    const select = find(axis === "rows" ? "order-rows" : "order-columns");
    const order = state[axis];
    const chosen = order.along === undefined ? order.by : `along ${order.along}`;
    const options = model.ORDERS.map((by) => element("option", { value: by }, by));
    if (order.along !== undefined) {
      options.push(element("option", { value: chosen }, words.along(axis, order)));
    }
    select.replaceChildren(...options);
    select.value = chosen;
  }

  function draw() {
    const tasks = model.sorted("columns", dataset().targets);
    const head = element("tr", { role: "row" }, corner(), ...tasks.map(columnHeader));
    const line = (entry) =>
      element(
        "tr",
        { role: "row" },
        rowHeader(entry),
        ...tasks.map((target) => gridCell(entry, target)),
      );
    const several = model.sorted("rows", dataset().several).filter((entry) =>
      tasks.some((target) => cellAt(entry.name, target.name)),
    );
    table.replaceChildren(
      find("heatmap-caption"),
      element("thead", { role: "rowgroup" }, head),
      element("tbody", { role: "rowgroup" }, ...model.sorted("rows", dataset().tasks).map(line)),
      ...(several.length
        ? [element("tbody", { role: "rowgroup", class: "several" }, ...several.map(line))]
        : []),
      ...askedRows(tasks),
    );
    find("key-asked").hidden = !dataset().asked.length;
    const algorithm = model.label(state.algorithm) || "baselines only";
    const where = `${dataset().name}, ${state.model}, ${algorithm}`;
    find("heatmap-caption").textContent =
      `${where}: ${CAPTIONS[state.unit]}. Rows are sources, and columns are targets. ` +
      "The diagonal shows the baselines’ scores.";
    showKeys();
    fillOrder("rows");
    fillOrder("columns");
    drawScale();
    rove(places().find(isCurrent) ?? places().find((place) => place.dataset.state) ?? null);
  }

  const CAPTIONS = {
    points: "change of the score compared with the baseline, points",
    percent: "improvement over the baseline, %",
    q: "q, the p value adjusted for all cells of the dataset; colours show the change in points",
  };

  // The legend explains only the marks that this heatmap has.
  function showKeys() {
    const has = (name) => table.querySelector(`.${name}`) !== null;
    for (const name of ["faded", "mixed", "unlearned", "significant", "one-training", "beyond"]) {
      const key = document.querySelector(`.legend .key-${name}`);
      if (key) key.parentElement.hidden = !has(name);
    }
    find("key-none").hidden = has("significant");
  }

  function corner() {
    return element("td", { role: "gridcell", class: "corner" }, "source ↓ target →");
  }

  function columnHeader(entry) {
    const button = element(
      "button",
      {
        type: "button",
        title: entry.name,
        "aria-label": `${entry.short}, target ${entry.name}: sort the rows by this column`,
        "data-target": entry.name,
        "data-header": "column",
        tabindex: "-1",
      },
      entry.short,
    );
    const sort = model.sortState("rows", entry.name);
    return element("th", { scope: "col", role: "columnheader", "aria-sort": sort }, button);
  }

  function rowHeader(entry) {
    const button = element(
      "button",
      {
        type: "button",
        title: spaced(entry.name),
        "aria-label": `${entry.short} ${spaced(entry.name)}: sort the columns by this source`,
        "data-source": entry.name,
        "data-header": "row",
        tabindex: "-1",
      },
      element("span", { class: "short" }, entry.short),
      " ",
      element("span", { class: "whole" }, spaced(entry.name)),
    );
    const sort = model.sortState("columns", entry.name);
    return element("th", { scope: "row", role: "rowheader", "aria-sort": sort }, button);
  }

  function gridCell(source, target) {
    const cell = cellAt(source.name, target.name);
    const look = model.lookOf(cell);
    const marks = [
      cell?.mark,
      look?.beyond ? "beyond" : "",
      cell?.faded ? "faded" : "",
      cell?.mixed ? "mixed" : "",
      cell?.fill || cell?.looks ? (model.isUnlearned(target.name) ? "unlearned" : "") : "",
    ];
    const button = element("button", {
      type: "button",
      "data-source": source.name,
      "data-target": target.name,
      "data-state": cell?.state ?? "absent",
      "aria-label": words.spoken(cell, source.name, target.name),
      "aria-pressed": String(isPinned(cell)),
      class: marks.filter(Boolean).join(" ") || null,
      tabindex: "-1",
    });
    button.textContent = look?.text ?? "";
    if (look?.fill) {
      button.style.backgroundColor = look.fill;
      button.style.color = look.ink;
    }
    return element("td", { role: "gridcell" }, button);
  }

  // Rows below the matrix: scores of prompted (not fine-tuned) models, without buttons.
  function askedRows(tasks) {
    if (!dataset().asked.length) return [];
    const rows = dataset().asked.map(({ name, scores }) =>
      element(
        "tr",
        { role: "row" },
        element("th", { scope: "row", role: "rowheader" }, name),
        ...tasks.map((task) => element("td", { role: "gridcell" }, scores[task.name] ?? "–")),
      ),
    );
    return [element("tbody", { role: "rowgroup", class: "asked" }, ...rows)];
  }

  function drawScale() {
    const { limits, colours } = dataset();
    const unit = state.unit === "percent" ? "percent" : "points";
    const sign = unit === "percent" ? " %" : "";
    find("scale-bar").style.backgroundImage = `linear-gradient(to right, ${colours.join(", ")})`;
    find("scale-low").textContent = `−${limits[unit]}${sign}`;
    find("scale-high").textContent = `+${limits[unit]}${sign}${unit === "points" ? " points" : ""}`;
  }

  // --- details of a cell or of a task, and the records behind a cell ---

  const isPinned = (cell) => cell !== null && cell === pinned;

  function showDetail(source, target) {
    detail.replaceChildren(
      element("h4", {}, words.headline(source, target)),
      ...details.cellDetails(cellAt(source, target)),
    );
  }

  function pin(source, target) {
    const cell = cellAt(source, target);
    pinned = cell;
    for (const place of places()) {
      if (place.dataset.state) {
        const here = cellAt(place.dataset.source, place.dataset.target);
        place.setAttribute("aria-pressed", String(isPinned(here)));
      }
    }
    if (cell !== null) {
      const parts = [dataset().name, state.model, state.algorithm, source, target];
      history.replaceState(null, "", `#cell/${parts.map(encodeURIComponent).join("/")}`);
    }
    const title = element("h4", {}, `Records of ${words.headline(source, target)}`);
    records.replaceChildren(title, ...details.records(cell));
    const below = element("a", { href: "#records" }, "Records and learning curves");
    detail.append(element("p", { class: "to-records" }, below));
  }

  // --- keyboard and mouse ---

  const places = () => [...table.querySelectorAll("button")];

  const isCurrent = (place) =>
    (place.dataset.source ?? null) === current.source &&
    (place.dataset.target ?? null) === current.target;

  // One place of the grid is in the order of the Tab key; the arrow keys move it.
  function rove(place) {
    for (const one of places()) one.tabIndex = -1;
    if (place === null) return;
    place.tabIndex = 0;
    const { source = null, target = null } = place.dataset;
    current = { source, target };
  }

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  function destination(event, rows) {
    const row = rows.findIndex((line) => line.includes(event.target));
    const column = rows[row].indexOf(event.target);
    if (event.key in STEPS) {
      const [down, right] = STEPS[event.key];
      return rows[row + down]?.[column + right];
    }
    if (event.key === "Home") return (event.ctrlKey ? rows[0] : rows[row]).find(Boolean);
    if (event.key === "End") return (event.ctrlKey ? rows.at(-1) : rows[row]).at(-1);
    return undefined;
  }

  function move(event) {
    if (!(event.key in STEPS) && event.key !== "Home" && event.key !== "End") return;
    const rows = [...table.rows]
      .map((row) => [...row.cells].map((one) => one.querySelector("button")))
      .filter((buttons) => buttons.some(Boolean));
    event.preventDefault();
    destination(event, rows)?.focus();
  }

  function look(event) {
    const place = event.target.closest("button");
    if (place === null) return;
    if (event.type === "focusin") rove(place);
    const { header, source, target } = place.dataset;
    if (header === undefined) showDetail(source, target);
    else detail.replaceChildren(...details.cards(source ?? target));
  }

  function press(event) {
    const place = event.target.closest("button");
    if (place === null) return;
    const { header, source, target } = place.dataset;
    if (header === undefined) {
      showDetail(source, target); // not every browser focuses a button that is clicked
      pin(source, target);
      return;
    }
    rove(place);
    if (header === "column") model.sortAlong("rows", target);
    else model.sortAlong("columns", source);
    draw();
    places().find(isCurrent)?.focus();
  }

  // --- choosing ---

  function fill(select, entries, chosen) {
    select.replaceChildren(
      ...entries.map(({ name, label: shown }) => element("option", { value: name }, shown ?? name)),
    );
    select.value = chosen;
  }

  function chooseDataset(place) {
    model.chooseDataset(place);
    const models = dataset().models.map((name) => ({ name }));
    fill(find("choose-model"), models, state.model);
    fill(find("choose-algorithm"), dataset().algorithms, state.algorithm);
    chosen();
  }

  // The records shown are of one cell: they go when another heatmap is chosen.
  function chosen() {
    pinned = null;
    detail.replaceChildren(element("p", {}, "Point at a cell, or move to it, to see its numbers."));
    records.replaceChildren(element("p", {}, "Click a cell or press Enter for its records."));
    draw();
  }

  function listen() {
    find("choose-dataset").addEventListener("change", (event) => {
      chooseDataset(event.target.selectedIndex);
    });
    find("choose-model").addEventListener("change", (event) => {
      state.model = event.target.value;
      chosen();
    });
    find("choose-algorithm").addEventListener("change", (event) => {
      state.algorithm = event.target.value;
      chosen();
    });
    find("choose-unit").addEventListener("change", (event) => {
      state.unit = event.target.value;
      draw();
    });
    for (const axis of ["rows", "columns"]) {
      find(`order-${axis}`).addEventListener("change", (event) => {
        model.chooseOrder(axis, event.target.value);
        draw();
      });
    }
    window.addEventListener("hashchange", follow);
    table.addEventListener("mouseover", look);
    table.addEventListener("focusin", look);
    table.addEventListener("click", press);
    table.addEventListener("keydown", move);
  }

  // A link to a cell, #cell/dataset/model/algorithm/source/target, chooses its heatmap and opens it.
  function follow() {
    if (!location.hash.startsWith("#cell/")) return;
    const [, name, ...rest] = location.hash.split("/").map(decodeURIComponent);
    const [ofModel, algorithm, source, target] = rest;
    const place = model.data.datasets.findIndex((one) => one.name === name);
    if (place < 0) return;
    find("choose-dataset").selectedIndex = place;
    state.model = ofModel;
    state.algorithm = algorithm;
    chooseDataset(place);
    const button = places().find(
      (one) => one.dataset.source === source && one.dataset.target === target,
    );
    if (!button) return;
    showDetail(source, target);
    pin(source, target);
    rove(button);
    find("interactive-title").scrollIntoView();
  }

  if (!model.data.datasets.length) return;
  fill(find("choose-dataset"), model.data.datasets, model.data.datasets[0].name);
  fill(find("choose-unit"), model.UNITS, state.unit);
  listen();
  chooseDataset(0);
  find("interactive").hidden = false;
  follow();
})();
