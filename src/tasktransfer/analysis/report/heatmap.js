// The interactive heatmap. The numbers, colours and texts come ready-made from Python (grid.py);
// this file chooses, sorts, shows and lets a keyboard through. No library, no network.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("heatmap-data").textContent);
  const find = (id) => document.getElementById(id);
  const table = find("heatmap");
  const detail = find("detail");
  const records = find("records");

  const STUDY_ORDER = "study order";
  const NAME = "name";
  const AS_SOURCE = "mean as source";
  const AS_TARGET = "mean as target";
  const ORDERS = [STUDY_ORDER, NAME, AS_SOURCE, AS_TARGET];
  const NAMES_BY_INITIAL = new Intl.Collator("en", { sensitivity: "base" });

  // What the reader has chosen. An order is {by} or, after a click on a header, {along: task};
  // `descending` turns it round. `current` is the cell that the Tab key enters at.
  const state = {
    dataset: 0,
    model: "",
    algorithm: "",
    rows: { by: STUDY_ORDER, descending: false },
    columns: { by: STUDY_ORDER, descending: false },
    current: { source: null, target: null },
    pinned: null,
  };

  // --- small things ---

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  // A number with fixed decimals and a true minus; a dash where there is none.
  function number(value, digits, sign = false) {
    if (value === null || value === undefined) return "–";
    const text = Math.abs(value).toFixed(digits);
    if (Number(text) === 0) return text;
    return (value < 0 ? "−" : sign ? "+" : "") + text;
  }

  function probability(value) {
    if (value === null || value === undefined) return "–";
    return value < 0.0005 ? "< 0.001" : value.toFixed(3);
  }

  const spaced = (task) => task.replaceAll("+", " + ");
  const dataset = () => data.datasets[state.dataset];
  const label = (name) => dataset().algorithms.find((one) => one.name === name)?.label ?? name;

  // --- which cell stands where ---

  const keyOf = (model, algorithm, source, target) =>
    JSON.stringify([model, algorithm, source, target]);

  const cells = data.datasets.map((one) => {
    const found = new Map();
    for (const cell of one.cells) {
      found.set(keyOf(cell.model, cell.algorithm, cell.source, cell.target), cell);
    }
    return found;
  });

  // The cell of a row and a column; the diagonal holds baselines, which all algorithms share.
  function cellAt(source, target) {
    const key =
      source === target
        ? keyOf(state.model, null, "", target)
        : keyOf(state.model, state.algorithm, source, target);
    return cells[state.dataset].get(key) ?? null;
  }

  function improvement(source, target) {
    if (source === target) return null;
    return cellAt(source, target)?.improvement ?? null;
  }

  // --- sorting ---

  function mean(values) {
    const there = values.filter((value) => value !== null);
    return there.length ? there.reduce((sum, value) => sum + value, 0) / there.length : null;
  }

  // What a row's or column's name is sorted by: a number, or null, which comes last.
  function measure(order, axis, name) {
    const tasks = dataset().tasks.map((one) => one.name);
    if (order.along !== undefined) {
      return axis === "rows" ? improvement(name, order.along) : improvement(order.along, name);
    }
    if (order.by === AS_SOURCE) return mean(tasks.map((target) => improvement(name, target)));
    return mean(tasks.map((source) => improvement(source, name)));
  }

  function sorted(axis, entries) {
    const order = state[axis];
    const turned = order.descending ? -1 : 1;
    if (order.along === undefined && order.by === STUDY_ORDER) return entries;
    if (order.along === undefined && order.by === NAME) {
      return entries.toSorted((a, b) => turned * NAMES_BY_INITIAL.compare(a.name, b.name));
    }
    const measures = new Map(entries.map((one) => [one.name, measure(order, axis, one.name)]));
    return entries.toSorted((a, b) => {
      const [first, second] = [measures.get(a.name), measures.get(b.name)];
      if (first === null || second === null) return (first === null) - (second === null);
      return turned * (first - second);
    });
  }

  // A header that is clicked sorts the other axis by its values: best first, then worst first,
  // then as the study has it.
  function sortAlong(axis, name) {
    const order = state[axis];
    if (order.along !== name) state[axis] = { along: name, descending: true };
    else if (order.descending) state[axis] = { along: name, descending: false };
    else state[axis] = { by: STUDY_ORDER, descending: false };
    draw();
  }

  function fillOrder(axis) {
    const select = find(axis === "rows" ? "order-rows" : "order-columns");
    const order = state[axis];
    const chosen = order.along === undefined ? order.by : `along ${order.along}`;
    const options = ORDERS.map((by) => element("option", { value: by }, by));
    if (order.along !== undefined) {
      const what = axis === "rows" ? "column" : "row";
      const way = order.descending ? "best first" : "worst first";
      options.push(
        element("option", { value: chosen }, `${what} ${spaced(order.along)}, ${way}`),
      );
    }
    select.replaceChildren(...options);
    select.value = chosen;
  }

  function chooseOrder(axis, by) {
    if (!ORDERS.includes(by)) return;
    state[axis] = { by, descending: by === AS_SOURCE || by === AS_TARGET };
    draw();
  }

  // --- drawing ---

  function draw() {
    const tasks = sorted("columns", dataset().tasks);
    const head = element("tr", { role: "row" }, corner(), ...tasks.map(columnHeader));
    const line = (entry) =>
      element(
        "tr",
        { role: "row" },
        rowHeader(entry),
        ...tasks.map((target) => gridCell(entry, target)),
      );
    const several = sorted("rows", dataset().several).filter((entry) =>
      tasks.some((target) => cellAt(entry.name, target.name)),
    );
    table.replaceChildren(
      find("heatmap-caption"),
      element("thead", { role: "rowgroup" }, head),
      element("tbody", { role: "rowgroup" }, ...sorted("rows", dataset().tasks).map(line)),
      ...(several.length
        ? [element("tbody", { role: "rowgroup", class: "several" }, ...several.map(line))]
        : []),
    );
    const algorithm = label(state.algorithm) || "baselines only";
    const where = `${dataset().name}, ${state.model}, ${algorithm}`;
    find("heatmap-caption").textContent =
      `${where}: improvement over the baseline, %. Rows are sources, columns targets; ` +
      "the diagonal is the baseline’s score.";
    fillOrder("rows");
    fillOrder("columns");
    drawScale();
    rove(places().find(isCurrent) ?? places().find((place) => place.dataset.state) ?? null);
  }

  function corner() {
    return element("td", { role: "gridcell", class: "corner" }, "source ↓ target →");
  }

  const sortState = (axis, name) =>
    state[axis].along === name ? (state[axis].descending ? "descending" : "ascending") : null;

  function columnHeader(entry) {
    const button = element(
      "button",
      {
        type: "button",
        title: entry.name,
        "aria-label": `target ${entry.name}: sort the rows by this column`,
        "data-target": entry.name,
        "data-header": "column",
        tabindex: "-1",
      },
      entry.short,
    );
    const sort = sortState("rows", entry.name);
    return element("th", { scope: "col", role: "columnheader", "aria-sort": sort }, button);
  }

  function rowHeader(entry) {
    const button = element(
      "button",
      {
        type: "button",
        title: spaced(entry.name),
        "aria-label": `source ${spaced(entry.name)}: sort the columns by this row`,
        "data-source": entry.name,
        "data-header": "row",
        tabindex: "-1",
      },
      element("span", { class: "short" }, entry.short),
      element("span", { class: "whole" }, spaced(entry.name)),
    );
    const sort = sortState("columns", entry.name);
    return element("th", { scope: "row", role: "rowheader", "aria-sort": sort }, button);
  }

  function gridCell(source, target) {
    const cell = cellAt(source.name, target.name);
    const button = element("button", {
      type: "button",
      "data-source": source.name,
      "data-target": target.name,
      "data-state": cell?.state ?? "absent",
      "aria-label": spoken(cell, source.name, target.name),
      "aria-pressed": String(isPinned(cell)),
      class: cell?.significant ? "significant" : null,
      tabindex: "-1",
    });
    button.textContent = cell?.text ?? "";
    if (cell?.fill) {
      button.style.backgroundColor = cell.fill;
      button.style.color = cell.ink;
    }
    return element("td", { role: "gridcell" }, button);
  }

  // What a screen reader says of a cell; the panel has the rest.
  function spoken(cell, source, target) {
    if (source === target) {
      const score = cell?.state === "baseline" ? number(cell.score, 1) : "missing";
      return `baseline of ${target}: ${score}`;
    }
    const pair = `${spaced(source)} to ${target}`;
    if (cell === null) return `${pair}: not in the study`;
    if (cell.state === "missing") return `${pair}: missing`;
    const size =
      cell.improvement === null
        ? `${number(cell.delta, 1, true)} points`
        : `${number(cell.improvement, 1, true)} %`;
    return `${pair}: ${size}${cell.significant ? ", significant" : ""}`;
  }

  function drawScale() {
    const { limit, colours } = dataset();
    find("scale-bar").style.backgroundImage = `linear-gradient(to right, ${colours.join(", ")})`;
    find("scale-low").textContent = `−${limit} %`;
    find("scale-high").textContent = `+${limit} %`;
  }

  // --- what a cell says ---

  const isPinned = (cell) => cell !== null && cell === state.pinned;

  function facts(cell) {
    const seeds = `${cell.seeds.length} (${cell.seeds.join(", ")})`;
    if (cell.state === "baseline") {
      return [
        ["baseline score", number(cell.score, 2)],
        ["seeds", seeds],
      ];
    }
    return [
      ["delta", `${number(cell.delta, 2, true)} points`],
      ["95 % interval", interval(cell)],
      ["improvement", cell.improvement === null ? "– (baseline 0)" : percent(cell)],
      ["score", number(cell.score, 2)],
      ["baseline score", number(cell.baseline_score, 2)],
      ["p", probability(cell.p)],
      ["q (p adjusted)", probability(cell.q)],
      ["significant", cell.q === null ? "no test" : cell.significant ? "yes (q ≤ 0.05)" : "no"],
      ["seeds", seeds],
      ["test instances", cell.instances || "no predictions: seeds only"],
    ];
  }

  const percent = (cell) => `${number(cell.improvement, 1, true)} %`;

  function interval(cell) {
    if (cell.low === null || cell.high === null) return "– (cannot be told)";
    return `${number(cell.low, 2, true)} to ${number(cell.high, 2, true)}`;
  }

  function headline(source, target) {
    const what = source === target ? `baseline of ${target}` : `${spaced(source)} → ${target}`;
    const how = source === target ? "" : `, ${label(state.algorithm)}`;
    return `${what}, ${state.model}${how}`;
  }

  function list(className, lines) {
    return element("ul", { class: className }, ...lines.map((line) => element("li", {}, line)));
  }

  function body(cell) {
    if (cell === null) return [element("p", {}, "Not in the study.")];
    if (cell.state === "missing") return [element("p", {}, "Missing:"), list("gaps", cell.gaps)];
    const shown = element("dl");
    for (const [name, value] of facts(cell)) {
      shown.append(element("div", {}, element("dt", {}, name), element("dd", {}, String(value))));
    }
    if (!cell.gaps.length) return [shown];
    return [shown, element("p", {}, "Planned, and not in these numbers:"), list("gaps", cell.gaps)];
  }

  function showDetail(source, target) {
    detail.replaceChildren(
      element("h4", {}, headline(source, target)),
      ...body(cellAt(source, target)),
    );
  }

  // --- the records behind a cell ---

  function pin(source, target) {
    const cell = cellAt(source, target);
    state.pinned = cell;
    for (const place of places()) {
      if (place.dataset.state) {
        const here = cellAt(place.dataset.source, place.dataset.target);
        place.setAttribute("aria-pressed", String(isPinned(here)));
      }
    }
    const title = element("h4", {}, `Records of ${headline(source, target)}`);
    if (cell === null) {
      records.replaceChildren(title, element("p", {}, "None: not in the study."));
      return;
    }
    const parts = cell.runs.length ? [recordTable(cell)] : [element("p", {}, "None is there.")];
    if (cell.gaps.length) parts.push(element("p", {}, "Not there:"), list("gaps", cell.gaps));
    parts.push(
      element("p", {}, "What made this number, and how to run it again:"),
      element("pre", {}, element("code", { id: "explain" }, command(cell))),
    );
    records.replaceChildren(title, ...parts);
  }

  // Names in a study are free text; whatever a shell could misread is quoted.
  function quoted(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
  }

  function command(cell) {
    const algorithm = cell.algorithm ?? "baseline";
    const tasks = [cell.source, cell.target].filter(Boolean);
    const words = [dataset().name, cell.model, algorithm, ...tasks];
    return `${data.explain} ${words.map(quoted).join(" ")}`;
  }

  function recordTable(cell) {
    const transfer = cell.algorithm !== null;
    const heads = transfer
      ? ["seed", "score", "baseline score", "delta", "digest", "record", "baseline’s record"]
      : ["seed", "score", "digest", "record"];
    const rows = cell.runs.map(([place, baseline]) => recordRow(place, baseline, transfer));
    const made = element(
      "table",
      {},
      element("caption", {}, "One line per seed."),
      element(
        "thead",
        {},
        element("tr", {}, ...heads.map((name) => element("th", { scope: "col" }, name))),
      ),
      element("tbody", {}, ...rows),
    );
    const region = { class: "scroll", role: "region", tabindex: "0", "aria-label": "records" };
    return element("div", region, made);
  }

  function recordRow(place, baseline, transfer) {
    const [seed, score, digest, path] = data.runs[place];
    const own = baseline === null ? null : data.runs[baseline];
    const numbers = transfer
      ? [
          number(score, 2),
          number(own?.[1], 2),
          number(own === null ? null : score - own[1], 2, true),
        ]
      : [number(score, 2)];
    const links = [link(path), ...(transfer ? [own === null ? "missing" : link(own[3])] : [])];
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, String(seed)),
      ...numbers.map((text) => element("td", { class: "number" }, text)),
      element("td", {}, element("code", {}, digest)),
      ...links.map((content) => element("td", {}, content)),
    );
  }

  // The report lies in the results folder, and so paths of records are relative to it. Every part
  // of a path is encoded: whatever a record is called, it stays a file below this folder.
  function link(path) {
    const href = path.split("/").map(encodeURIComponent).join("/");
    return element("a", { href: `./${href}` }, path);
  }

  // --- keyboard and mouse ---

  const places = () => [...table.querySelectorAll("button")];

  const isCurrent = (place) =>
    (place.dataset.source ?? null) === state.current.source &&
    (place.dataset.target ?? null) === state.current.target;

  // One place of the grid is in the order of the Tab key; the arrow keys move it.
  function rove(place) {
    for (const one of places()) one.tabIndex = -1;
    if (place === null) return;
    place.tabIndex = 0;
    const { source = null, target = null } = place.dataset;
    state.current = { source, target };
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
    const rows = [...table.rows].map((row) =>
      [...row.cells].map((one) => one.querySelector("button")),
    );
    event.preventDefault();
    destination(event, rows)?.focus();
  }

  function look(event) {
    const place = event.target.closest("button");
    if (place === null) return;
    if (event.type === "focusin") rove(place);
    if (place.dataset.state) showDetail(place.dataset.source, place.dataset.target);
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
    if (header === "column") sortAlong("rows", target);
    else sortAlong("columns", source);
    places().find(isCurrent)?.focus();
  }

  // --- choosing ---

  function fill(select, entries, chosen) {
    select.replaceChildren(
      ...entries.map(({ name, label: shown }) => element("option", { value: name }, shown ?? name)),
    );
    select.value = chosen;
  }

  // Keep what was chosen where the dataset has it too.
  function chooseDataset(place) {
    state.dataset = place;
    const models = dataset().models.map((name) => ({ name }));
    const { algorithms } = dataset();
    const kept = (entries, name) =>
      entries.some((one) => one.name === name) ? name : (entries[0]?.name ?? "");
    state.model = kept(models, state.model);
    state.algorithm = kept(algorithms, state.algorithm);
    state.rows = { by: STUDY_ORDER, descending: false };
    state.columns = { by: STUDY_ORDER, descending: false };
    fill(find("choose-model"), models, state.model);
    fill(find("choose-algorithm"), algorithms, state.algorithm);
    chosen();
  }

  // The records shown are of one cell: they go when another heatmap is chosen.
  function chosen() {
    state.pinned = null;
    detail.replaceChildren(element("p", {}, "Point at a cell or move to it for its numbers."));
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
    for (const axis of ["rows", "columns"]) {
      find(`order-${axis}`).addEventListener("change", (event) => {
        chooseOrder(axis, event.target.value);
      });
    }
    table.addEventListener("mouseover", look);
    table.addEventListener("focusin", look);
    table.addEventListener("click", press);
    table.addEventListener("keydown", move);
  }

  fill(find("choose-dataset"), data.datasets, data.datasets[0].name);
  listen();
  chooseDataset(0);
  find("interactive").hidden = false;
})();
