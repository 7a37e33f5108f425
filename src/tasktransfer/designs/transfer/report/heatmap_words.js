// Text for the heatmap: formats numbers, cells and the `explain` command.
"use strict";

const words = (() => {
  // Format a number with fixed decimals and a true minus sign; a dash if it is missing.
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

  // Describe the sort order that a click on a header has set.
  function along(axis, { along: task, descending }) {
    const what = axis === "rows" ? "column" : "row";
    return `${what} ${spaced(task)}, ${descending ? "best first" : "worst first"}`;
  }

  const spaced = (task) => task.replaceAll("+", " + ");

  // Return the short text of a cell for screen readers; `facts` has the details.
  function spoken(cell, source, target) {
    if (source === target) {
      const score = cell?.state === "baseline" ? number(cell.score, 1) : "missing";
      return `baseline of ${target}: ${score}`;
    }
    const pair = `${spaced(source)} to ${target}`;
    if (cell === null) return `${pair}: not in the study`;
    if (cell.state === "missing") return `${pair}: missing`;
    const size = `${cell.looks.points.text.replace("*", "")} points`; // as printed: −0.04, not 0.0
    const mark = {
      significant: ", significant",
      "one-training": ", only one training run",
      "left-race": ", left the race",
    };
    const notes = [
      cell.mixed ? ", seeds differ in sign" : "",
      model.isUnlearned(target) ? ", baseline has not learned" : "",
      model.lookOf(cell).beyond ? ", beyond the colour scale" : "",
    ];
    return `${pair}: ${size}${mark[cell.mark] ?? ""}${notes.join("")}`;
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
      ...(model.isUnlearned(cell.target) ? [["baseline", "has not learned"]] : []),
      ["p", probability(cell.p)],
      ["q (p adjusted)", probability(cell.q)],
      ["significant", verdict(cell)],
      ["seeds", cell.mixed ? `${seeds}, with different signs` : seeds],
      ["test instances", drawn(cell)],
    ];
  }

  // Describe what the test resamples in place of other test sets.
  function drawn(cell) {
    if (!cell.instances) return "no predictions: seeds only";
    if (cell.dialogues) return `${cell.instances} of ${cell.dialogues} dialogues`;
    return `${cell.instances}, resampled individually: dialogues unknown`;
  }

  function verdict(cell) {
    if (cell.mark === "left-race") return "not tested: the pair left the race, and its seeds were used for the selection";
    if (cell.mark === "one-training") return "not tested: with one run, the variation between seeds is unknown";
    if (cell.q === null) return "not tested";
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

  // Names in a study are free text, so quote every word that a shell could misread.
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
