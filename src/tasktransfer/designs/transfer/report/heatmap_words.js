// Numbers and cells in words.
"use strict";

const words = (() => {
  // A number with fixed decimals and a true minus; a dash where there is none.
  function number(value, digits, sign = false) {
    if (value === null || value === undefined) return "–";
    const text = Math.abs(value).toFixed(digits);
    if (Number(text) === 0) return text;
    return (value < 0 ? "−" : sign ? "+" : "") + text;
  }

  function probability(value) {
    if (value === null || value === undefined) return "–";
    return value < 0.001 ? "< 0.001" : value.toFixed(3);
  }

  // An order of rows or columns that a click on a header made.
  function along(axis, { along: task, descending }) {
    const what = axis === "rows" ? "column" : "row";
    return `${what} ${spaced(task)}, ${descending ? "best first" : "worst first"}`;
  }

  const spaced = (task) => task.replaceAll("+", " + ");

  // What a screen reader says of a cell; `facts` has the rest.
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
    const mark = {
      significant: ", significant",
      "one-training": ", one training only",
      "left-race": ", left the race",
    };
    return `${pair}: ${size}${mark[cell.mark] ?? ""}${cell.beyond ? ", beyond the colours" : ""}`;
  }

  function facts(cell) {
    const alone = cell.seeds.length === 1 ? "number " : "";
    const seeds = `${cell.seeds.length} (${alone}${cell.seeds.join(", ")})`;
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
      ["significant", verdict(cell)],
      ["seeds", seeds],
      ["test instances", drawn(cell)],
    ];
  }

  // What stands for other test sets.
  function drawn(cell) {
    if (!cell.instances) return "no predictions: seeds only";
    if (cell.dialogues) return `${cell.instances} of ${cell.dialogues} dialogues`;
    return `${cell.instances}, drawn one by one: dialogues unknown`;
  }

  function verdict(cell) {
    if (cell.mark === "left-race") return "no test: left the race, its seeds are those that chose";
    if (cell.mark === "one-training") return "one training only, other seeds unknown";
    if (cell.q === null) return "no test";
    return cell.mark === "significant" ? "yes (q ≤ 0.05)" : "no";
  }

  const percent = (cell) => `${number(cell.improvement, 1, true)} %`;

  function interval(cell) {
    if (cell.low === null || cell.high === null) return `– (${cell.no_interval})`;
    return `${number(cell.low, 2, true)} to ${number(cell.high, 2, true)}`;
  }

  function headline(source, target) {
    const what = source === target ? `baseline of ${target}` : `${spaced(source)} → ${target}`;
    const how = source === target ? "" : `, ${model.label(model.state.algorithm)}`;
    return `${what}, ${model.state.model}${how}`;
  }

  // Names in a study are free text; whatever a shell could misread is quoted.
  function quoted(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
  }

  function command(cell) {
    const algorithm = cell.algorithm ?? "baseline";
    const tasks = [cell.source, cell.target].filter(Boolean);
    const parts = [model.dataset().name, cell.model, algorithm, ...tasks];
    return `${model.data.explain} ${parts.map(quoted).join(" ")}`;
  }

  return { number, spaced, along, spoken, facts, headline, command };
})();
