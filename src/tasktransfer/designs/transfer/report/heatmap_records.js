// What the heatmap shows of a cell, of its records with their learning curves, and of a task.
"use strict";

const details = (() => {
  const { number } = words;
  const { element, link } = curves;
  const RECORD = "record (file next to this page)";
  const CURVES = ["loss by round", "dev score by round"];

  function list(className, lines) {
    return element("ul", { class: className }, ...lines.map((line) => element("li", {}, line)));
  }

  function definitions(pairs) {
    const lines = pairs.map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, String(value))),
    );
    return element("dl", {}, ...lines);
  }

  // Return the numbers of a cell.
  function cellDetails(cell) {
    if (cell === null) return [element("p", {}, "Not in the study.")];
    if (cell.state === "missing") return [element("p", {}, "Missing:"), list("gaps", cell.gaps)];
    const shown = definitions(words.facts(cell));
    if (!cell.gaps.length) return [shown];
    return [shown, element("p", {}, "Planned but missing here:"), list("gaps", cell.gaps)];
  }

  // Return the card of a task; a row of several sources has the card of each.
  function cards(name) {
    return name.split("+").flatMap((task) => {
      const card = model.dataset().cards[task];
      const known = card ? [element("p", {}, card.description), definitions(card.facts)] : [];
      return [element("h4", {}, words.spaced(task)), ...known];
    });
  }

  // Return the records of a cell: a table with one row per seed, and the command that explains it.
  function records(cell) {
    if (cell === null) return [element("p", {}, "None: not in the study.")];
    const parts = cell.runs.length ? [recordTable(cell)] : [element("p", {}, "No records yet.")];
    if (cell.gaps.length) parts.push(element("p", {}, "Missing:"), list("gaps", cell.gaps));
    parts.push(
      element("p", {}, "Show how this number was computed and how to reproduce it:"),
      element("pre", {}, element("code", { id: "explain" }, words.command(cell))),
    );
    return parts;
  }

  function recordTable(cell) {
    const transfer = cell.algorithm !== null;
    const pairs = cell.runs.map(([place, baseline]) => [
      model.data.runs[place],
      baseline === null ? null : model.data.runs[baseline],
    ]);
    const scales = CURVES.map((name, measure) => makeScale(pairs, name, measure)).filter(Boolean);
    const numbers = transfer ? ["score", "baseline score", "delta"] : ["score"];
    const files = transfer ? [RECORD, `baseline’s ${RECORD}`] : [RECORD];
    const heads = ["seed", ...numbers, ...scales.map(({ name }) => name), "digest", ...files];
    const grey = transfer ? " Grey curves show the baseline." : "";
    const drawn = scales.length ? ` The curves show the last training step.${grey}` : "";
    const made = element(
      "table",
      {},
      element("caption", {}, `One row per seed. Records are files next to this page.${drawn}`),
      element(
        "thead",
        {},
        element("tr", {}, ...heads.map((name) => element("th", { scope: "col" }, name))),
      ),
      element("tbody", {}, ...pairs.map(([run, own]) => recordRow(run, own, transfer, scales))),
    );
    const region = { class: "scroll", role: "region", tabindex: "0", "aria-label": "records" };
    return element("div", region, made);
  }

  function recordRow(run, own, transfer, scales) {
    const [seed, score, digest, path] = run;
    const delta = own === null ? null : score - own[1];
    const numbers = transfer
      ? [number(score, 2), number(own?.[1], 2), number(delta, 2, true)]
      : [number(score, 2)];
    const links = [link(path), ...(transfer ? [own === null ? "missing" : link(own[3])] : [])];
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, String(seed)),
      ...numbers.map((text) => element("td", { class: "number" }, text)),
      ...scales.map((scale) => element("td", {}, plot(scale, run, transfer ? own : null))),
      element("td", {}, element("code", {}, digest)),
      ...links.map((content) => element("td", {}, content)),
    );
  }

  // --- learning curves: small multiples, with one scale for all seeds of a cell ---

  const curve = (run, measure) => run?.[4]?.[measure] ?? [];

  // Return name, measure and range of the curves of a cell; null without curves.
  function makeScale(pairs, name, measure) {
    const limits = curves.range(pairs.flat().flatMap((run) => curve(run, measure)));
    return limits && { name, measure, limits };
  }

  function plot({ name, measure, limits }, run, baseline) {
    const [values, own] = [curve(run, measure), curve(baseline, measure)];
    if (!values.some((value) => value !== null)) return "–";
    const spoken = (numbers) => numbers.map((value) => number(value, 2)).join(", ");
    const other = own.length ? `; baseline: ${spoken(own)}` : "";
    const text = `${name}: ${spoken(values)}${other}`;
    const last = values.findLast((value) => value !== null);
    const drawn = curves.draw(limits, text, values, own);
    return element("span", { class: "curves" }, drawn, ` ${number(last, 2)}`);
  }

  return { element, cellDetails, cards, records };
})();
