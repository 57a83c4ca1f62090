// Parts of the report that work with the keyboard, and marks of its charts.

// Makes `host` a list of which one of `options`, elements in it, is chosen by
// click or arrow keys; `choose` gets its number. Gives a function that chooses.
function listbox(host, options, label, choose) {
  host.setAttribute("role", "listbox");
  host.setAttribute("aria-label", label);
  host.setAttribute("tabindex", "0");
  let current = -1;
  const select = (index, byUser) => {
    if (current >= 0) options[current].setAttribute("aria-selected", "false");
    current = Math.max(0, Math.min(options.length - 1, index));
    const option = options[current];
    option.setAttribute("aria-selected", "true");
    host.setAttribute("aria-activedescendant", option.id);
    if (byUser && option.scrollIntoView) option.scrollIntoView({ block: "nearest" });
    choose(current);
  };
  options.forEach((option, index) => {
    option.id = newId("option");
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    option.addEventListener("click", () => select(index, false));
  });
  host.addEventListener("keydown", (event) => {
    const last = options.length - 1;
    const next = {
      ArrowDown: current + 1,
      ArrowRight: current + 1,
      ArrowUp: current - 1,
      ArrowLeft: current - 1,
      PageDown: current + 10,
      PageUp: current - 10,
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined || event.target !== host) return;
    event.preventDefault();
    select(next, true);
  });
  return (index) => select(index, false);
}

// Tabs named `names`, of which the chosen one's panel is what `show` returns.
function tabs(names, label, show) {
  const list = el("div", { role: "tablist", class: "tabs", "aria-label": label });
  const id = newId("panel");
  const panel = el("div", { role: "tabpanel", id });
  const buttons = names.map((name) => el("button", { role: "tab", type: "button", "aria-controls": id }, name));
  const select = (index) => {
    buttons.forEach((button, i) => {
      button.setAttribute("aria-selected", i === index);
      button.tabIndex = i === index ? 0 : -1;
    });
    panel.setAttribute("aria-label", names[index]);
    panel.replaceChildren(show(index));
  };
  buttons.forEach((button, index) => button.addEventListener("click", () => select(index)));
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = buttons.indexOf(document.activeElement);
    const next = (at + step + buttons.length) % buttons.length;
    select(next);
    buttons[next].focus();
  });
  list.append(...buttons);
  if (names.length) select(0);
  return el("div", {}, list, panel);
}

// Fills `place` with what `draw` makes for the width that the page has, and again
// when that changes. Gives a function that draws again.
function drawToFit(place, draw) {
  let width = 0; // The page's width at the last draw.
  const redraw = () => {
    width = byId("main").clientWidth;
    place.replaceChildren(...draw(Math.max(400, Math.min(1200, width - 60))));
  };
  redraw();
  new ResizeObserver(() => {
    if (place.isConnected && byId("main").clientWidth !== width) redraw();
  }).observe(place);
  return redraw;
}

// Tabs of the report's programs; `show` gives the panel of one.
function programTabs(report, show) {
  return tabs(report.programs.map((program) => program.name), "Programs", (index) => show(report, report.programs[index]));
}

function legend(entries) {
  return el(
    "ul",
    { class: "legend" },
    ...entries.map(([color, text]) => el("li", {}, el("i", { style: `background:${color}` }), text)),
  );
}

// 1, 2 and 5 times powers of ten from at most `low` to at least `high`; only
// the powers where they span much.
function marksAround(low, high) {
  const steps = high / low > 2000 ? [1] : [1, 2, 5];
  const all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
    for (const step of steps) all.push(Number(`${step}e${power}`));
  const first = all.filter((mark) => mark <= low).length - 1;
  const last = all.findIndex((mark) => mark >= high);
  return all.slice(first, last + 1);
}

// About four steps of a power of two from 0 to `high`, in bytes.
function byteMarks(high) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(4, high) / 5));
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, i) => i * step);
}
