// This file shows the changes between another model or plan, `before`, and this
// one: facts, memory, and for each program what it launches for each op of the
// model.

// A value before and after, with the change in percent of numbers.
function change(before, after, text) {
  if (before === after) return before === undefined ? "\u2013" : text(after);
  const both = `${before === undefined ? "none" : text(before)} \u2192 ${after === undefined ? "none" : text(after)}`;
  if (!(before > 0 && after > 0)) return both;
  const share = (100 * (after - before)) / before;
  return `${both} (${share < 0 ? "\u2212" : "+"}${Math.abs(share).toFixed(Math.abs(share) < 10 ? 1 : 0)} %)`;
}

function showComparison(report, body) {
  const { before } = report;
  const facts = new Map(before.facts);
  const named = [["Model or plan", before.name, report.name], ...report.facts.map(([name, value]) => [name, facts.get(name), value])];
  for (const [name, value] of before.facts) if (!report.facts.some(([other]) => other === name)) named.push([name, value, undefined]);
  const differ = named.filter(([, old, now]) => old !== now).map((row) => row.map((text) => text || "none"));
  const sizes = memoryParts(report).map(([what, size], i) => [what, memoryParts(before)[i][1], size]);
  sizes.push(["All", sum(sizes, ([, size]) => size), sum(sizes, ([, , size]) => size)]);
  body.append(
    el("p", { class: "quiet" }, `From ${before.name} (before) to ${report.name} (after). Ops of the model stand for those of all layers; equal rows are left out.`),
    differ.length ? table("Facts that differ", [["Fact"], ["Before"], ["After"]], differ) : el("p", {}, "All facts of the model and the options are the same."),
    table("Memory of a run", [["Part"], ["Size", "number"]], sizes.map(([what, old, now]) => [what, change(old, now, bytes)])),
    el("h3", {}, "Programs"),
    programTabs(report, compareProgram),
  );
}

// The launches of `program` for each op of the model, by the op's name.
function launchesByOp(report, program) {
  const ops = new Map();
  if (!program) return ops;
  const work = workOf(report, program.uses);
  const times = new Map(work ? kernelsOf(work).map((kernel) => [kernel.kernel, kernel.seconds / kernel.launches]) : []);
  for (const launch of program.launches) {
    const use = program.uses[launch.use];
    const kernel = report.kernels[use.kernel].name;
    const name = launch.label.replace(/^layers\.\d+\./, "layers.*.");
    if (!ops.has(name)) ops.set(name, { kernels: new Set(), launches: 0, bytes: 0, expected: 0, measured: 0 });
    const op = ops.get(name);
    op.kernels.add(kernel);
    op.launches += 1;
    op.bytes += costBytes(use.cost);
    op.expected += use.expected || 0;
    op.measured += times.get(kernel) || 0;
  }
  return ops;
}

function compareProgram(report, program) {
  const old = report.before.programs.find((other) => other.name === program.name);
  if (!old) return el("p", { class: "note" }, `${report.before.name} has no program ${program.name}.`);
  const [was, is] = [launchesByOp(report.before, old), launchesByOp(report, program)];
  const names = (op) => op && [...op.kernels].join(", ");
  const figures = [
    ["Launches", "launches", whole],
    ["Bytes in a step", "bytes", bytes],
    ["Expected in a step", "expected", microseconds],
    ["Measured in a step", "measured", microseconds],
  ].filter(([, key]) => [...was.values(), ...is.values()].some((op) => op[key]));
  const cells = (a, b) => figures.map(([, key, text]) => change((a && a[key]) || undefined, (b && b[key]) || undefined, text));
  const ops = [...new Set([...is.keys(), ...was.keys()])].map((name) => [name, was.get(name), is.get(name)]);
  const differ = ops.filter(([, a, b]) => !a || !b || names(a) !== names(b) || figures.some(([, key]) => a[key] !== b[key]));
  const rows = differ.map(([name, a, b]) => [name, el("div", {}, ...[...new Set([names(a) || "none", names(b) || "none"])].map((text, i) => el("div", {}, i ? "\u2192 " : "", el("code", {}, text)))), ...cells(a, b)]);
  const all = (map) => Object.fromEntries(figures.map(([, key]) => [key, sum([...map.values()], (op) => op[key])]));
  return table(
    differ.length ? `${count(differ.length, "op")} of ${whole(ops.length)} ${differ.length === 1 ? "differs" : "differ"}` : "No op differs",
    [["Op of the model"], ["Kernel"], ...figures.map(([title]) => [title, "number"])],
    rows,
    ["All ops", "", ...cells(all(was), all(is))],
  );
}
