// The kernels of each program: what a launch moves and computes, and where that
// puts it under a machine's roof.

const familyColors = new Map();

// The colour of a kernel family, the same in all charts.
function familyColor(family) {
  if (!familyColors.has(family)) familyColors.set(family, `var(--c${familyColors.size % 12})`);
  return familyColors.get(family);
}

function costBytes(cost) {
  return cost.weights + cost.rows + cost.keys;
}

function showKernels(report, body) {
  for (const kernel of report.kernels) familyColor(kernel.family);
  const { basis } = report;
  body.append(
    el(
      "p",
      { class: "quiet" },
      `For a step whose last row attends to ${whole(basis.context)} tokens (--cost-context); it computes logits of ${count(basis.logits_rows, "row")}. Figures are of one launch; shares are of a whole step.`,
    ),
    ...(isPlan(report) ? [el("p", { class: "note" }, "A plan does not hold tiles, slow paths and expected times, which need the model.")] : []),
    el(
      "details",
      {},
      el("summary", {}, "How bytes and FLOPs are counted"),
      el("p", {}, "A plan keeps how many bytes of a launch grow with its rows (activations, and the rows of an embedding), with the tokens (keys and values, partial results of attention) and with neither (weights). A report of a model shows the same figures. Partial results grow by whole splits and windows end, so that these figures are the mean over the plan\u2019s context."),
      el("p", {}, "From the types of each kernel\u2019s operands: each operand is read once and each result written once, so a kernel that reads a weight again for every block of rows moves more, and one that finds activations in a cache reads less from memory."),
      el("p", {}, "A multiply-add is two operations; an addition, multiplication, division, maximum, exponential, sine, cosine or square root is one. Dequantising is not counted. The formulas stand in ir/kernel/Cost.cpp."),
    ),
  );
  body.append(programTabs(report, programKernels));
}

// The kernel of a use: its name, which leads to its source, what it is made
// with, and why nothing faster.
function kernelCell(report, use) {
  const kernel = report.kernels[use.kernel];
  const facts = [kernel.shape, use.tiles].filter(Boolean).join("; ");
  return el(
    "div",
    {},
    el("i", { style: `background:${familyColor(kernel.family)}` }),
    sourceLink(report, kernel),
    facts ? el("div", { class: "quiet small" }, facts) : null,
    ...use.slow_paths.map((why) => el("div", { class: "slow small" }, `Slow path: ${why}`)),
  );
}

// The time that the compiler expects of a launch, and its share of the limit.
function expectedText(use) {
  if (use.expected) return `${microseconds(use.expected)}, ${percent(use.least / use.expected)} of the ${use.bound} limit`;
  return use.least ? `at least ${microseconds(use.least)} (${use.bound})` : "\u2013";
}

function programKernels(report, program) {
  const launches = sum(program.uses, (use) => use.launches);
  const total = sum(program.uses, (use) => use.launches * costBytes(use.cost));
  const uses = [...program.uses].sort((a, b) => b.launches * costBytes(b.cost) - a.launches * costBytes(a.cost));
  const orDash = (amount) => (amount ? bytes(amount) : "\u2013");
  const hasTimes = uses.some((use) => use.least);
  const rows = uses.map((use, index) => {
    const { cost } = use;
    return [
      kernelCell(report, use),
      String(index + 1),
      `${whole(use.launches)} of ${count(use.rows, "row")}`,
      orDash(cost.weights),
      orDash(cost.rows),
      orDash(cost.keys),
      cost.flops ? flops(cost.flops) : "\u2013",
      cost.flops ? (cost.flops / costBytes(cost)).toPrecision(3) : "\u2013",
      shareBar((use.launches * costBytes(cost)) / total, 60),
      ...(hasTimes ? [expectedText(use)] : []),
    ];
  });
  const step = (of) => sum(program.uses, (use) => use.launches * of(use.cost));
  const columns = [
    ["Kernel"],
    ["No.", "number"],
    ["Launches", "number"],
    ["Weights", "number"],
    ["For its rows", "number"],
    ["For the tokens", "number"],
    ["Arithmetic", "number"],
    ["FLOP/byte", "number"],
    ["Share of the step\u2019s bytes"],
    ...(hasTimes ? [["Expected of a launch"]] : []),
  ];
  const allFlops = step((cost) => cost.flops);
  const foot = [
    "The whole step",
    "",
    whole(launches),
    bytes(step((cost) => cost.weights)),
    bytes(step((cost) => cost.rows)),
    bytes(step((cost) => cost.keys)),
    flops(allFlops),
    (allFlops / total).toPrecision(3),
    bytes(total),
    ...(hasTimes ? [`at least ${microseconds(sum(uses, (use) => use.launches * (use.least || 0)))}`] : []),
  ];
  return el("div", {}, table(programCaption(program), columns, rows, foot), roofline(report, uses));
}

function programCaption(program) {
  const most = (number) => (number === 1 ? "1 row" : `up to ${whole(number)} rows`);
  return `Program ${program.name}: steps of ${most(program.max_rows)}, logits of ${most(program.max_logits_rows)}`;
}
