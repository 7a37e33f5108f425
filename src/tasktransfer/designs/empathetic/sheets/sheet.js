"use strict";
// One item is visible at a time. Answers are radio buttons, which localStorage keeps.
(() => {
  const form = document.getElementById("sheet");
  const items = [...form.querySelectorAll(".item")];
  const told = document.getElementById("told");
  const buttons = Object.fromEntries(
    ["previous", "next", "open", "download"].map((id) => [id, document.getElementById(id)]),
  );
  const { sheet, key } = document.body.dataset;
  const place = `tasktransfer ${key} ${sheet}`;
  let current = 0;

  const questions = (item) => [...item.querySelectorAll("fieldset")];
  const chosen = (question) => question.querySelector("input:checked");
  const isAnswered = (item) => questions(item).every(chosen);

  function save() {
    const checked = [...form.querySelectorAll("input:checked")];
    const answers = Object.fromEntries(checked.map((input) => [input.name, input.value]));
    try {
      localStorage.setItem(place, JSON.stringify({ current, answers }));
    } catch {
      document.getElementById("unsaved").hidden = false;
    }
  }

  function restore() {
    let kept = null;
    try {
      kept = JSON.parse(localStorage.getItem(place));
    } catch {
      document.getElementById("unsaved").hidden = false;
    }
    if (!kept) return;
    for (const input of form.querySelectorAll("input")) {
      input.checked = kept.answers[input.name] === input.value;
    }
    current = kept.current;
    document.querySelector("header details").open = false;
  }

  function update() {
    const count = items.filter(isAnswered).length;
    told.textContent = `${count} of ${items.length} items answered`;
    document.getElementById("progress").value = count;
    buttons.previous.disabled = current === 0;
    buttons.next.disabled = current === items.length - 1;
    buttons.open.disabled = count === items.length;
    save();
  }

  function show(number, focus) {
    current = Math.max(0, Math.min(number, items.length - 1));
    items.forEach((item, n) => { item.hidden = n !== current; });
    if (focus) {
      const heading = items[current].querySelector("h2");
      heading.focus({ preventScroll: true });
      heading.scrollIntoView();
    }
    update();
  }

  function showOpen() {
    const order = items.map((_, n) => (current + 1 + n) % items.length);
    show(order.find((n) => !isAnswered(items[n])) ?? current, true);
  }

  function download() {
    const lines = items.filter(isAnswered).map((item) => {
      const answers = questions(item).map((question) => {
        const { name, value } = chosen(question);
        return [name.split(" ")[1], /^\d$/.test(value) ? Number(value) : value];
      });
      return JSON.stringify({ key, sheet, item: item.id, ...Object.fromEntries(answers) });
    });
    const text = lines.map((line) => `${line}\n`).join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
    link.download = `${sheet}.jsonl`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  form.addEventListener("change", update);
  form.addEventListener("submit", (event) => { event.preventDefault(); show(current + 1, true); });
  form.addEventListener("keydown", (event) => {
    if (!/^[1-5]$/.test(event.key) || event.ctrlKey || event.altKey || event.metaKey) return;
    const open = questions(items[current]);
    const question = open.find((each) => !chosen(each)) ?? open.find((each) => each.contains(document.activeElement));
    const input = question?.querySelectorAll("input")[Number(event.key) - 1];
    if (!input) return;
    input.checked = true;
    input.focus();
    update();
    event.preventDefault();
  });
  buttons.previous.addEventListener("click", () => show(current - 1, true));
  buttons.open.addEventListener("click", showOpen);
  buttons.download.addEventListener("click", download);
  restore();
  show(current, false);
})();
