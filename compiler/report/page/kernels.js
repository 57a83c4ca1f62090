// The kernels of each program: what a launch moves and computes, and where that
// puts it under a machine's roof.

const familyColors = new Map();

// The colour of a kernel family, the same in all charts.
function familyColor(family) {
  if (!familyColors.has(family)) familyColors.set(family, `var(--c${familyColors.size % 12})`);
  return familyColors.get(family);
}

function costBytes(cost) {
  return cost.weights + cost.inputs + cost.outputs + cost.kv_read + cost.kv_written;
}

function showKernels(report, body) {
  for (const kernel of report.kernels) familyColor(kernel.family);
  const { basis } = report;
  if (basis.context) {
    body.append(
      el(
        "p",
        { class: "quiet" },
        `For a step whose last row attends to ${whole(basis.context)} tokens (--cost-context); it computes logits of ${whole(basis.logits_rows)} ${basis.logits_rows === 1 ? "row" : "rows"}. Figures are of one launch; shares are of a whole step.`,
      ),
      el(
        "details",
        {},
        el("summary", {}, "How bytes and FLOPs are counted"),
        el("p", {}, "From the types of each kernel's operands, nothing is measured: each operand is read once and each result written once, so a kernel that reads a weight again for every block of rows moves more, and one that finds activations in a cache reads less from memory."),
        el("p", {}, "A multiply-add is two operations; an addition, multiplication, division, maximum, exponential, sine, cosine or square root is one. Dequantising is not counted. The formulas stand in ir/kernel/Cost.cpp."),
      ),
    );
  } else {
    body.append(el("p", { class: "note" }, "A plan does not hold what its kernels compute: FLOPs, activations, configurations and the roofline need the model. Weight bytes count every weight that the launches name."));
  }
  body.append(programTabs(report, programKernels));
}

function kernelName(kernel) {
  // The family is in the name, and 0 is a parameter that is not used.
  const config = kernel.config
    .split(", ")
    .filter((parameter) => parameter && !/^family| = 0$/.test(parameter))
    .join(", ");
  const facts = [kernel.shape, config].filter(Boolean).join("; ");
  return el(
    "span",
    { title: kernel.roles.length ? `multiplies with ${kernel.roles.join(", ")}` : null },
    el("i", { style: `background:${familyColor(kernel.family)}` }),
    el("code", {}, kernel.name),
    facts ? el("div", { class: "quiet small" }, facts) : null,
  );
}

function programKernels(report, program) {
  const panel = el("div", {});
  const launches = sum(program.uses, (use) => use.launches);
  if (!report.basis.context) {
    const rows = program.uses.map((use) => [
      kernelName(report.kernels[use.kernel]),
      report.kernels[use.kernel].family,
      whole(use.launches),
      use.weight_bytes ? bytes(use.weight_bytes) : "\u2013",
    ]);
    panel.append(table(programCaption(program), [["Kernel"], ["Family"], ["Launches", "number"], ["Weights named", "number"]], rows, ["A step", "", whole(launches), ""]));
    return panel;
  }
  const total = sum(program.uses, (use) => use.launches * costBytes(use.cost));
  const uses = [...program.uses].sort((a, b) => b.launches * costBytes(b.cost) - a.launches * costBytes(a.cost));
  const pair = (read, written) => (written ? `${read ? bytes(read) : "0"} / ${bytes(written)}` : read ? bytes(read) : "\u2013");
  const rows = uses.map((use, index) => {
    const { cost } = use;
    const share = (use.launches * costBytes(cost)) / total;
    return [
      kernelName(report.kernels[use.kernel]),
      String(index + 1),
      `${whole(use.launches)} \u00d7 ${whole(use.rows)}`,
      cost.weights ? bytes(cost.weights) : "\u2013",
      pair(cost.inputs, cost.outputs),
      pair(cost.kv_read, cost.kv_written),
      cost.flops ? flops(cost.flops) : "\u2013",
      cost.flops ? (cost.flops / costBytes(cost)).toPrecision(3) : "\u2013",
      shareBar(share, 60),
    ];
  });
  const step = (of) => sum(program.uses, (use) => use.launches * of(use.cost));
  const columns = [
    ["Kernel"],
    ["No.", "number"],
    ["Launches \u00d7 rows", "number"],
    ["Weights", "number"],
    ["Activations, read / written", "number"],
    ["KV cache, read / written", "number"],
    ["Arithmetic", "number"],
    ["FLOP/byte", "number"],
    ["Of a step\u2019s bytes"],
  ];
  const allFlops = step((cost) => cost.flops);
  const foot = [
    "A step",
    "",
    whole(launches),
    bytes(step((cost) => cost.weights)),
    pair(step((cost) => cost.inputs), step((cost) => cost.outputs)),
    pair(step((cost) => cost.kv_read), step((cost) => cost.kv_written)),
    flops(allFlops),
    (allFlops / total).toPrecision(3),
    bytes(total),
  ];
  panel.append(el("div", { class: "scroll" }, table(programCaption(program), columns, rows, foot)), roofline(report, uses));
  return panel;
}

function programCaption(program) {
  const rows = program.max_rows === 1 ? "1 row" : `up to ${whole(program.max_rows)} rows`;
  return `Program ${program.name}: steps of ${rows}, logits of up to ${whole(program.max_logits_rows)}`;
}

// --- Roofline ----------------------------------------------------------------

// What the user gave, or typed into the page: bytes and operations a second.
function roofline(report, uses) {
  const peaks = report.peaks;
  const place = el("div", {});
  const field = (value, name) => el("input", { type: "number", min: "0", step: "any", value, "aria-label": name });
  const memory = field(peaks.gigabytes, "Memory bandwidth in GB/s");
  const compute = field(peaks.gigaflops, "Peak GFLOP/s");
  const given = peaks.gigabytes !== null && peaks.gigaflops !== null;
  const draw = () => {
    const isTyped = Number(memory.value) !== peaks.gigabytes || Number(compute.value) !== peaks.gigaflops;
    const machine = Number(memory.value) > 0 && Number(compute.value) > 0 ? { bandwidth: Number(memory.value) * 1e9, compute: Number(compute.value) * 1e9 } : null;
    place.replaceChildren(rooflineText(machine, given && !isTyped, uses), rooflineChart(report, uses, machine));
  };
  for (const input of [memory, compute]) input.addEventListener("input", draw);
  draw();
  return el("div", { class: "roofline" }, el("h3", {}, "Roofline"), el("div", { class: "inputs" }, el("label", {}, "Memory, GB/s ", memory), el("label", {}, "Arithmetic, GFLOP/s ", compute)), place);
}

function rooflineText(machine, isGiven, uses) {
  if (!machine)
    return el(
      "p",
      { class: "quiet" },
      "No machine\u2019s peaks were given (--peak-gbs, --peak-gflops), so there is no roof: kernels lie at their intensity and at the bytes they move in a step. Type peaks above to draw one.",
    );
  const least = sum(uses, (use) => use.launches * Math.max(costBytes(use.cost) / machine.bandwidth, use.cost.flops / machine.compute));
  return el(
    "p",
    { class: "quiet" },
    `The peaks are ${isGiven ? "those given as --peak-gbs and --peak-gflops" : "those typed above"}, not measured. Kernels lie on the roof, at the most that their intensity allows; how near they come is not measured here. ` +
      `If every byte came from memory, all launches of a step together would take at least ${milliseconds(least)}.`,
  );
}

function rooflineChart(report, uses, machine) {
  const width = 1200;
  const height = 380;
  const box = { left: 80, right: width - 30, top: 40, bottom: height - 48 };
  const points = uses
    .map((use, index) => {
      const moved = costBytes(use.cost);
      const intensity = use.cost.flops / moved;
      return {
        use,
        number: index + 1,
        x: intensity,
        y: machine ? Math.min(machine.compute, intensity * machine.bandwidth) / 1e9 : moved * use.launches,
      };
    })
    .filter((point) => point.x > 0)
    .sort((a, b) => a.x - b.x);
  const ridge = machine ? machine.compute / machine.bandwidth : null;
  const xMarks = marksAround(Math.min(...points.map((point) => point.x)) / 1.2, Math.max(...points.map((point) => point.x), ridge || 0) * 1.6);
  const yMarks = marksAround(Math.min(...points.map((point) => point.y)), Math.max(...points.map((point) => point.y), machine ? machine.compute / 1e9 : 0));
  const scale = (marks, from, to) => (value) => from + ((to - from) * Math.log10(value / marks[0])) / Math.log10(marks[marks.length - 1] / marks[0]);
  const xOf = scale(xMarks, box.left, box.right);
  const yOf = scale(yMarks, box.bottom, box.top);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}` });
  for (const mark of xMarks)
    chart.append(
      svg("line", { class: "grid", x1: xOf(mark), x2: xOf(mark), y1: box.top, y2: box.bottom }),
      svg("text", { x: xOf(mark), y: box.bottom + 18, "text-anchor": "middle", class: "quiet-text" }, mark >= 1 ? whole(mark) : String(mark)),
    );
  for (const mark of yMarks)
    chart.append(
      svg("line", { class: "grid", x1: box.left, x2: box.right, y1: yOf(mark), y2: yOf(mark) }),
      svg("text", { x: box.left - 8, y: yOf(mark) + 4, "text-anchor": "end", class: "quiet-text" }, machine ? (mark >= 1 ? whole(mark) : String(mark)) : scaled(mark, 1000, ["B", "kB", "MB", "GB", "TB"])),
    );
  chart.append(
    svg("text", { x: (box.left + box.right) / 2, y: height - 10, "text-anchor": "middle", class: "quiet-text" }, "arithmetic intensity, FLOP/byte"),
    svg("text", { x: box.left - 60, y: 18, class: "quiet-text" }, machine ? "attainable GFLOP/s" : "bytes in a step"),
  );
  if (machine) {
    const roof = (x) => Math.max(yMarks[0], Math.min(machine.compute, x * machine.bandwidth) / 1e9);
    const first = Math.max(xMarks[0], (yMarks[0] * 1e9) / machine.bandwidth);
    const last = xMarks[xMarks.length - 1];
    chart.append(
      svg("path", { class: "roof", d: `M${xOf(first)} ${yOf(roof(first))} L${xOf(ridge)} ${yOf(roof(ridge))} L${xOf(last)} ${yOf(roof(last))}` }),
      svg("line", { class: "ridge", x1: xOf(ridge), x2: xOf(ridge), y1: yOf(roof(ridge)), y2: box.bottom }),
      svg("text", { x: xOf(ridge) + 6, y: box.bottom - 8, class: "quiet-text" }, `ridge at ${ridge.toPrecision(3)} FLOP/byte`),
    );
  }
  for (const point of points) Object.assign(point, { cx: xOf(point.x), cy: yOf(point.y) });
  const dots = points.map((point) => {
    const family = report.kernels[point.use.kernel].family;
    return svg("circle", { class: "dot", cx: point.cx, cy: point.cy, r: 6, style: `fill:${familyColor(family)}` });
  });
  chart.append(...dotNumbers(points), ...dots);
  const live = el("div", { class: "live", "aria-live": "polite" }, "Choose a kernel with a click or the arrow keys.");
  listbox(chart, dots, "Kernels by arithmetic intensity", (index) => {
    const point = points[index];
    dots.forEach((dot, i) => dot.classList.toggle("active", i === index));
    live.textContent =
      `${point.number}. ${report.kernels[point.use.kernel].name}: ${point.x.toPrecision(3)} FLOP/byte` +
      (machine ? `, at most ${point.y.toPrecision(3)} GFLOP/s, bound by ${point.x < ridge ? "memory" : "arithmetic"}` : `, ${bytes(point.y)} in a step`);
  });
  const families = [...new Set(points.map((point) => report.kernels[point.use.kernel].family))];
  return el("div", { class: "chart" }, chart, live, legend(families.map((family) => [familyColor(family), family])));
}

// The numbers of points, each at the first place around its point that is free.
function dotNumbers(points) {
  const places = [];
  for (const distance of [14, 26, 38, 50, 62])
    for (const [x, y] of [[1, 0], [-1, 0], [0, -1], [0, 1], [0.8, -0.7], [-0.8, -0.7], [0.8, 0.7], [-0.8, 0.7]]) places.push([x * distance, y * distance]);
  const taken = points.map((point) => [point.cx, point.cy]);
  return points.flatMap((point) => {
    const isFree = ([dx, dy]) => taken.every(([x, y]) => Math.abs(x - point.cx - dx) > 15 || Math.abs(y - point.cy - dy) > 12);
    const [dx, dy] = places.find(isFree) || places[0];
    taken.push([point.cx + dx, point.cy + dy]);
    return [
      svg("line", { class: "ridge", x1: point.cx, y1: point.cy, x2: point.cx + 0.7 * dx, y2: point.cy + 0.7 * dy, visibility: Math.hypot(dx, dy) > 20 ? null : "hidden" }),
      svg("text", { x: point.cx + dx, y: point.cy + dy + 4, "text-anchor": "middle" }, String(point.number)),
    ];
  });
}
