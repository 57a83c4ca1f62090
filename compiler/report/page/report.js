// The page: its head, the switch of colours, and the sections.

function showFacts(report) {
  document.title = `llamac report: ${report.name}`;
  byId("name").textContent = report.name;
  byId("facts").append(...report.facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// The choice is kept where the browser lets a file keep anything.
function startTheme() {
  const select = byId("theme");
  const set = (value) => {
    if (value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
    select.value = value;
  };
  let kept = null;
  try {
    kept = localStorage.getItem("llamac-report-theme");
  } catch {
    kept = null;
  }
  set(["light", "dark"].includes(kept) ? kept : "auto");
  select.addEventListener("change", () => {
    set(select.value);
    try {
      localStorage.setItem("llamac-report-theme", select.value);
    } catch {
      // Not kept: the switch still works for this visit.
    }
  });
}

function showWeights(report, body) {
  const total = sum(report.weights, (format) => format.bytes);
  const rows = report.weights.map((format) => [format.type, whole(format.tensors), bytes(format.bytes), whole(format.bytes), shareBar(format.bytes / total, 100)]);
  body.append(table("As the kernels read them", [["Element type"], ["Tensors", "number"], ["Size", "number"], ["Bytes", "number"], ["Share of all"]], rows, ["All", whole(sum(report.weights, (format) => format.tensors)), bytes(total), whole(total), ""]));
}

function sourceId(file) {
  return `source-${file.name}`;
}

function showSource(report, body) {
  if (!report.source.length) {
    body.append(el("p", { class: "note" }, "This plan holds no source."));
    return;
  }
  body.append(
    el("p", { class: "quiet" }, "What the kernels are compiled from, each an instance of a skeleton header. The name of a kernel above leads to its source."),
    ...report.source.map((file) => el("details", { id: sourceId(file) }, el("summary", {}, `${file.name}, ${count(file.text.split("\n").length, "line")}`), el("pre", { class: "source", tabindex: "0" }, file.text))),
  );
}

// Where the function `name` is defined: the file, and the part of its text
// between empty lines.
function findSource(report, name) {
  for (const file of report.source) {
    const at = file.text.search(new RegExp(`\\b${name}\\s*\\(`));
    if (at < 0) continue;
    const begin = file.text.lastIndexOf("\n\n", at);
    const end = file.text.indexOf("\n\n", at);
    return { file, begin: begin < 0 ? 0 : begin + 2, end: end < 0 ? file.text.length : end };
  }
  return null;
}

// The name of a kernel as a link that opens its source, where there is one.
function sourceLink(report, kernel) {
  const title = kernel.roles.length ? `multiplies with ${kernel.roles.join(", ")}` : null;
  const found = /^\w+$/.test(kernel.name) ? findSource(report, kernel.name) : null;
  if (!found) return el("code", { title }, kernel.name);
  const link = el("a", { href: "#source", title }, el("code", {}, kernel.name));
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const { file, begin, end } = found;
    const details = byId(sourceId(file));
    const mark = el("mark", { tabindex: "-1" }, file.text.slice(begin, end));
    for (const other of document.querySelectorAll("#source mark")) other.replaceWith(other.textContent);
    details.open = true;
    details.querySelector("pre").replaceChildren(file.text.slice(0, begin), mark, file.text.slice(end));
    mark.focus();
    mark.scrollIntoView({ block: "center" });
  });
  return link;
}

function isPlan(report) {
  return report.kind === "plan";
}

function showSection(report, id, title, show) {
  const body = el("div", { id: `${id}-body` });
  byId("nav").append(el("a", { href: `#${id}` }, title));
  byId("main").append(el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), body));
  show(report, body);
}

function start() {
  const report = JSON.parse(byId("data").textContent);
  startTheme();
  showFacts(report);
  if (report.before) showSection(report, "comparison", "Comparison", showComparison);
  for (const section of [
    ["passes", "Passes", showPasses],
    ["graph", "Layer graph", showGraphs],
    ["kernels", "Kernels", showKernels],
    ["memory", "Memory", showMemory],
    ["weights", "Weights", showWeights],
    ["source", "Source", showSource],
  ])
    showSection(report, ...section);
}

start();
