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
  const rows = report.weights.map((format) => [
    format.type,
    whole(format.tensors),
    bytes(format.bytes),
    `${whole(format.bytes)} B`,
    shareBar(format.bytes / total, 320),
  ]);
  body.append(table("As the kernels read them", [["Element type"], ["Tensors", "number"], ["Bytes", "number"], ["", "number"], ["Of all"]], rows, ["All", whole(sum(report.weights, (format) => format.tensors)), bytes(total), `${whole(total)} B`, ""]));
}

function showSource(report, body) {
  if (!report.source) {
    body.append(el("p", { class: "note" }, "This plan holds no source."));
    return;
  }
  const lines = report.source.split("\n").length;
  body.append(
    el("p", { class: "quiet" }, "The C++ that the kernels are compiled from, each an instance of a skeleton header."),
    el("details", {}, el("summary", {}, `kernels.cpp, ${whole(lines)} lines`), el("pre", { class: "source", tabindex: "0" }, report.source)),
  );
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
