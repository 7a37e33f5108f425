// State of the heatmap: the reader's choices, the place of each cell, and the sort orders. This
// file does not touch the document: heatmap.js shows the state, heatmap_words.js formats it.
"use strict";

const model = (() => {
  const embedded = document.getElementById("heatmap-data"); // null: the study has no transfer
  const data = embedded ? JSON.parse(embedded.textContent) : { datasets: [] };

  const STUDY_ORDER = "study order";
  const NAME = "name";
  const AS_SOURCE = "mean as source";
  const AS_TARGET = "mean as target";
  const ORDERS = [STUDY_ORDER, NAME, AS_SOURCE, AS_TARGET];
  const ALPHABET = new Intl.Collator("en", { sensitivity: "base" });

  const UNITS = [
    { name: "points", label: "points" },
    { name: "percent", label: "% of the baseline" },
    { name: "q", label: "q (significance)" },
  ];

  // An order is {by} or, after a click on a header, {along: task}; `descending` turns it round.
  const inStudyOrder = () => ({ by: STUDY_ORDER, descending: false });
  const state = {
    dataset: 0,
    model: "",
    algorithm: "",
    unit: "points",
    rows: inStudyOrder(),
    columns: inStudyOrder(),
  };

  const dataset = () => data.datasets[state.dataset];
  const label = (name) => dataset().algorithms.find((one) => one.name === name)?.label ?? name;

  // Keep the previous choices if the dataset has them too. The first heatmap is that of the
  // algorithm with the highest mean change.
  function chooseDataset(place) {
    state.dataset = place;
    const kept = (names, name) => (names.includes(name) ? name : (names[0] ?? ""));
    const algorithms = dataset().algorithms.map((one) => one.name);
    state.model = kept(dataset().models, state.model);
    state.algorithm = kept(algorithms, state.algorithm || dataset().opens[state.model]);
    state.rows = inStudyOrder();
    state.columns = inStudyOrder();
  }

  // --- cells ---

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

  // The text and colours of a cell in the chosen unit.
  const lookOf = (cell) => cell?.looks?.[state.unit] ?? cell;

  const isUnlearned = (target) =>
    dataset().unlearned.some(([name, task]) => name === state.model && task === target);

  // The size of a cell by which rows and columns are sorted.
  function effect(source, target) {
    if (source === target) return null;
    const cell = cellAt(source, target);
    return (state.unit === "percent" ? cell?.improvement : cell?.delta) ?? null;
  }

  // --- orders ---

  function mean(values) {
    const there = values.filter((value) => value !== null);
    return there.length ? there.reduce((sum, value) => sum + value, 0) / there.length : null;
  }

  // Return the sort key of a row or column: a number, or null, which sorts last.
  function measure(order, axis, name) {
    const tasks = dataset().tasks.map((one) => one.name);
    if (order.along !== undefined) {
      return axis === "rows" ? effect(name, order.along) : effect(order.along, name);
    }
    if (order.by === AS_SOURCE) return mean(dataset().targets.map((target) => effect(name, target.name)));
    return mean(tasks.map((source) => effect(source, name)));
  }

  function sorted(axis, entries) {
    const order = state[axis];
    const turned = order.descending ? -1 : 1;
    if (order.along === undefined && order.by === STUDY_ORDER) return entries;
    if (order.along === undefined && order.by === NAME) {
      return entries.toSorted((a, b) => turned * ALPHABET.compare(a.name, b.name));
    }
    const measures = new Map(entries.map((one) => [one.name, measure(order, axis, one.name)]));
    return entries.toSorted((a, b) => {
      const [first, second] = [measures.get(a.name), measures.get(b.name)];
      if (first === null || second === null) return (first === null) - (second === null);
      return turned * (first - second);
    });
  }

  // Sort the other axis by the values of the clicked header. Further clicks cycle through best
  // first, worst first and the study's order.
  function sortAlong(axis, name) {
    const order = state[axis];
    if (order.along !== name) state[axis] = { along: name, descending: true };
    else if (order.descending) state[axis] = { along: name, descending: false };
    else state[axis] = inStudyOrder();
  }

  function chooseOrder(axis, by) {
    if (!ORDERS.includes(by)) return;
    state[axis] = { by, descending: by === AS_SOURCE || by === AS_TARGET };
  }

  const sortState = (axis, name) =>
    state[axis].along === name ? (state[axis].descending ? "descending" : "ascending") : null;

  return {
    data,
    state,
    dataset,
    label,
    chooseDataset,
    cellAt,
    lookOf,
    isUnlearned,
    UNITS,
    ORDERS,
    sorted,
    sortAlong,
    sortState,
    chooseOrder,
  };
})();
