// Learning curves: small drawings of a loss or a dev score by round.
"use strict";

const curves = (() => {
  const [WIDTH, HEIGHT] = [120, 44];

  function build(made, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  const element = (tag, attributes = {}, ...children) =>
    build(document.createElement(tag), attributes, children);
  const shape = (tag, attributes, ...children) =>
    build(document.createElementNS(SVG, tag), attributes, children);

  // The browser knows the namespace of drawings, so that the page contains no address.
  const parsed = document.createElement("template");
  parsed.innerHTML = "<svg></svg>";
  const SVG = parsed.content.firstChild.namespaceURI;

  // Every part of a path is encoded, so that no record name can point outside the results folder.
  function link(path, text = path) {
    const href = path.split("/").map(encodeURIComponent).join("/");
    return element("a", { href: `./${href}` }, text);
  }

  // Return the lowest and the highest of some values; null without values.
  function range(values) {
    const known = values.filter((value) => value !== null);
    return known.length ? { low: Math.min(...known), high: Math.max(...known) } : null;
  }

  // Return the drawing of a curve, next to another curve in grey if there is one.
  function draw({ low, high }, text, values, own = [], selected = null) {
    const rounds = Math.max(values.length, own.length);
    const x = (index) => 4 + (index * (WIDTH - 8)) / Math.max(1, rounds - 1);
    const y = (value) => 4 + ((high - value) / (high - low || 1)) * (HEIGHT - 8);
    const line = (numbers, className) => {
      const points = numbers.flatMap((value, index) =>
        value === null ? [] : [`${x(index).toFixed(1)},${y(value).toFixed(1)}`],
      );
      return shape("polyline", { points: points.join(" "), class: className });
    };
    const mark = (values[selected] ?? null) !== null;
    const dot = { cx: x(selected), cy: y(values[selected]), r: 3 };
    const size = { width: WIDTH, height: HEIGHT, class: "curve", role: "img", "aria-label": text };
    return shape(
      "svg",
      size,
      shape("title", {}, text),
      line(own, "own"),
      line(values, "run"),
      ...(mark ? [shape("circle", dot)] : []),
    );
  }

  return { element, link, range, draw };
})();

// The learning curves of every training: filtered by words, and drawn a few at a time.
(() => {
  const { element, link, range, draw } = curves;
  const FEW = 12;
  const NAMES = ["training loss", "dev score"];
  const data = document.getElementById("training-data");
  if (data === null) return;
  const find = (id) => document.getElementById(id);
  const [list, words, count, more] = ["curves", "words", "count"]
    .map((name) => find(`training-${name}`))
    .concat(find("more-trainings"));
  let trainings = [];
  let matching = [];
  let shown = 0;

  const printed = (value) => (value === null ? "none" : String(value).replace("-", "−"));

  function plot(name, values, selected) {
    const limits = range(values);
    if (limits === null) return element("p", {}, `${name}: none`);
    const text = `${name} by round: ${values.map(printed).join(", ")}`;
    const chosen = `${name} ${printed(values[selected])}`;
    return element("p", {}, draw(limits, text, values, [], selected), element("br"), chosen);
  }

  function card([name, seed, record, losses, scores, selected]) {
    const title = element("h4", {}, link(record, `${name}, seed ${seed}`));
    const plots = [losses, scores].map((values, place) => plot(NAMES[place], values, selected));
    return element("li", {}, title, ...plots);
  }

  function showMore() {
    list.append(...matching.slice(shown, shown + FEW).map(card));
    shown = Math.min(shown + FEW, matching.length);
    count.textContent = `${shown} of ${matching.length} shown`;
    more.hidden = shown === matching.length;
  }

  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/);
    matching = trainings.filter(([name, seed]) => {
      const text = `${name} seed ${seed}`.toLowerCase();
      const isIn = (word) => (/^\d+$/.test(word) ? text.split(" ") : text).includes(word);
      return wanted.every(isIn); // a number is a whole word, so that seed 1 is not seed 10
    });
    list.replaceChildren();
    shown = 0;
    showMore();
  }

  find("trainings").addEventListener("toggle", () => {
    if (trainings.length) return; // drawn before
    trainings = JSON.parse(data.textContent);
    find("training-tools").hidden = false;
    filter();
  });
  words.addEventListener("input", filter);
  more.addEventListener("click", showMore);
})();
