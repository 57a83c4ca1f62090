// This file compares what a machine could do with each kernel to what was
// measured. Peaks are those that the user gave or typed, else those that were
// measured, else those of the target's data sheet.

// The work of a measurement with the largest share of launches of the kernels
// of `uses`. Their times would depend on what else ran.
function workOf(report, uses) {
  const names = new Set(uses.map((use) => report.kernels[use.kernel].name));
  const share = (work) => {
    const known = sum(kernelsOf(work), (kernel) => (names.has(kernel.kernel) ? kernel.launches : 0));
    return known / Math.max(1, sum(kernelsOf(work), (kernel) => kernel.launches));
  };
  return report.measured.reduce((best, work) => (!best || share(work) > share(best) ? work : best), null);
}

// Without their sum, which is in the list as well.
function kernelsOf(work) {
  return work.kernels.filter((kernel) => kernel.kernel !== "all" && kernel.launches > 0 && kernel.seconds > 0);
}

// The peaks of memory in GB/s, and of arithmetic in f32 and in products of int8
// in GFLOP/s: [value, where it is from] each; null: unknown.
function knownPeaks(report, uses) {
  const { peaks } = report;
  const limits = report.measured.length ? report.measured[0].limits : peaks.limits;
  const sheet = (of) => Math.max(0, ...uses.map((use) => (use.peaks ? of(use.peaks) : 0))) / 1e9;
  const first = (...choices) => choices.find(([value]) => value) || [null, ""];
  return [
    first(
      [peaks.gigabytes, "given as --peak-gbs"],
      [limits && limits.bandwidth / 1e9, limits && `measured, of ${limits.bandwidth_of}`],
      [sheet((peak) => peak.bandwidth), "of the data sheet"],
    ),
    first(
      [peaks.gigaflops, "given as --peak-gflops"],
      [limits && limits.f32_operations / 1e9, "measured"],
      [sheet((peak) => peak.operations), "of the data sheet"],
    ),
    first([limits && limits.int8_operations / 1e9, "measured"]),
  ];
}

function roofline(report, uses) {
  const place = el("div", {});
  const known = knownPeaks(report, uses);
  const field = (value, name) => el("input", { type: "number", min: "0", step: "any", value: value && Number(value.toPrecision(4)), "aria-label": name });
  const labels = ["Memory, GB/s ", "Arithmetic, GFLOP/s "];
  if ([uses, ...report.measured.map(kernelsOf)].some((kernels) => kernels.some(isInt8))) labels.push("Products of int8, GFLOP/s ");
  const fields = labels.map((label, i) => field(known[i][0], label.trim()));
  const starts = fields.map((input) => input.value);
  const works = report.measured;
  const choice = el("select", {}, ...works.map((work, i) => el("option", { value: i }, work.work)), el("option", { value: -1 }, "nothing"));
  choice.value = String(works.indexOf(workOf(report, uses)));
  const redraw = drawToFit(place, (width) => {
    const values = fields.map((input, i) => (input.value === starts[i] ? known[i][0] : Number(input.value)));
    const [bandwidth, f32, int8 = Infinity] = values.map((value) => (value > 0 ? value * 1e9 : Infinity));
    const origins = fields.map((input, i) => (input.value === starts[i] ? known[i][1] : "typed above"));
    const machine = bandwidth < Infinity ? { bandwidth, f32, int8, origins } : null;
    const work = works[Number(choice.value)];
    return [rooflineText(machine, uses, work), rooflineChart(report, uses, machine, work, width), work ? measuredTable(report, uses, machine, work) : null].filter(Boolean);
  });
  for (const input of [...fields, choice]) input.addEventListener("input", redraw);
  return el(
    "div",
    { class: "roofline" },
    el("h3", {}, "Roofline"),
    el(
      "div",
      { class: "inputs" },
      ...fields.map((input, i) => el("label", {}, labels[i], input)),
      works.length ? el("label", {}, "Measured ", choice) : null,
    ),
    place,
  );
}

function rooflineText(machine, uses, work) {
  if (!machine)
    return el(
      "p",
      { class: "quiet" },
      "No machine\u2019s peaks are known (--peak-gbs, --peak-gflops, or --measured), so there is no roof: kernels lie at their intensity and at the bytes they move in a step. Type peaks above to draw one.",
    );
  const least = sum(uses, (use) => use.launches * leastSeconds(costBytes(use.cost), use.cost.flops, computeOf(machine, use), machine));
  const [memory, f32, int8] = machine.origins;
  const origin = (rate, text) => (rate < Infinity ? text : "not known");
  return el(
    "p",
    { class: "quiet" },
    `The peak of memory is ${memory}, that of arithmetic ${origin(machine.f32, f32)}` +
      (int8 === undefined ? ". " : `, that of products of int8 ${origin(machine.int8, int8)}. `) +
      (work ? "Full points are measured; rings" : "Kernels") +
      " lie on the roof, at the most that their intensity allows. " +
      `If every byte came from memory, all launches of a step together would take at least ${milliseconds(least)}.`,
  );
}

// Whether a use of a kernel, or a measured kernel, has products of int8.
function isInt8(kernel) {
  return kernel.int8_products || kernel.int8_operations > 0;
}

// The peak of the arithmetic of such a kernel, in FLOP/s.
function computeOf(machine, kernel) {
  return isInt8(kernel) ? machine.int8 : machine.f32;
}

function leastSeconds(moved, operations, compute, machine) {
  return Math.max(moved / machine.bandwidth, operations / compute);
}

function rateText(rate) {
  return rate >= 100 ? whole(rate) : rate.toPrecision(3);
}

// A table of the measured times, the longest first.
function measuredTable(report, uses, machine, work) {
  const kernels = kernelsOf(work);
  const all = sum(kernels, (kernel) => kernel.seconds);
  const hasExpected = uses.some((use) => use.expected);
  const leastOf = (kernel) => leastSeconds(kernel.bytes, kernel.operations, computeOf(machine, kernel), machine);
  const rows = kernels.map((kernel) => {
    const number = report.kernels.findIndex((other) => other.name === kernel.kernel);
    const use = uses.find((other) => other.kernel === number);
    const rate = (amount) => (amount ? rateText(amount / kernel.seconds / 1e9) : "\u2013");
    return [
      number < 0 ? el("code", { title: "not a kernel of this report" }, kernel.kernel) : sourceLink(report, report.kernels[number]),
      whole(kernel.launches),
      microseconds(kernel.seconds / kernel.launches),
      ...(hasExpected ? [use && use.expected ? microseconds(use.expected) : "\u2013"] : []),
      rate(kernel.bytes),
      rate(kernel.operations),
      machine ? percent(leastOf(kernel) / kernel.seconds) : "\u2013",
      shareBar(kernel.seconds / all, 60),
    ];
  });
  const isOver = machine && kernels.some((kernel) => leastOf(kernel) > kernel.seconds);
  const unknown = kernels.filter((kernel) => report.kernels.every((other) => other.name !== kernel.kernel)).length;
  return el(
    "div",
    {},
    table(
      `Measured: ${work.work}${unknown ? `. ${count(unknown, "kernel")} of it ${unknown === 1 ? "is" : "are"} not in this report: was another plan measured, or a tuned one?` : ""}`,
      [["Kernel"], ["Launches", "number"], ["Time of a launch", "number"], ...(hasExpected ? [["Expected of a launch", "number"]] : []), ["GB/s", "number"], ["GFLOP/s", "number"], ["Share of the roof", "number"], ["Share of the time"]],
      rows,
      ["All", whole(sum(kernels, (kernel) => kernel.launches)), ...Array(hasExpected ? 5 : 4).fill(""), milliseconds(all)],
    ),
    isOver ? el("p", { class: "quiet" }, "More than 100 %: the bytes came from a cache, which is faster than memory.") : null,
  );
}

// Points { name, family, number, x, y, text, isMeasured }.
function rooflinePoints(report, uses, machine, work) {
  const bound = (x, compute) => (machine ? Math.min(compute, x * machine.bandwidth) / 1e9 : 0);
  const points = uses.map((use, index) => {
    const { name, family } = report.kernels[use.kernel];
    const moved = costBytes(use.cost);
    const x = use.cost.flops / moved;
    const compute = machine ? computeOf(machine, use) : Infinity;
    const y = machine ? bound(x, compute) : moved * use.launches;
    const text = machine ? `, at most ${y.toPrecision(3)} GFLOP/s, bound by ${y * 1e9 < compute ? "memory" : "arithmetic"}` : `, ${bytes(y)} in a step`;
    const expected = use.expected ? `; expected of a launch: ${expectedText(use)}` : "";
    return { name, family, number: String(index + 1), x, y, compute, text: text + expected };
  });
  if (machine && work)
    for (const kernel of kernelsOf(work)) {
      const { kernel: name, seconds, bytes: moved, operations } = kernel;
      const x = operations / moved;
      const y = operations / seconds / 1e9;
      const known = points.find((point) => point.name === name);
      const compute = computeOf(machine, kernel);
      const text = `: measured ${rateText(y)} GFLOP/s, ${percent(y / bound(x, compute))} of the roof, ${rateText(moved / seconds / 1e9)} GB/s`;
      points.push({ name, family: known ? known.family : "not in this report", number: known ? known.number : "", x, y, compute, text, isMeasured: true });
    }
  return points.filter((point) => point.x > 0 && point.y > 0 && isFinite(point.x)).sort((a, b) => a.x - b.x);
}

function rooflineChart(report, uses, machine, work, width) {
  const height = 400;
  const box = { left: 80, right: width - 30, top: 40, bottom: height - 48 };
  const points = rooflinePoints(report, uses, machine, work);
  if (!points.length) return el("p", { class: "note" }, "No kernel of this program computes anything.");
  // A roof for each peak of arithmetic, all of which share the slope of memory.
  const ceilings = machine ? [...new Set(points.map((point) => point.compute))].sort((a, b) => a - b) : [];
  const highestKnown = Math.max(0, ...ceilings.filter((compute) => compute < Infinity));
  const highest = (of, least) => Math.max(...points.map(of), least || 0);
  const xMarks = marksAround(Math.min(...points.map((point) => point.x)) / 1.2, highest((point) => point.x, machine ? highestKnown / machine.bandwidth : 0) * 1.6);
  const yMarks = marksAround(Math.min(...points.map((point) => point.y)), highest((point) => point.y, highestKnown / 1e9));
  const scale = (marks, from, to) => (value) => from + ((to - from) * Math.log10(value / marks[0])) / Math.log10(marks[marks.length - 1] / marks[0]);
  const xOf = scale(xMarks, box.left, box.right);
  const yOf = scale(yMarks, box.bottom, box.top);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}` });
  let free = 0; // Where the last text along x ends.
  for (const mark of xMarks) {
    const text = mark >= 1 ? whole(mark) : String(mark);
    const half = 4 * text.length;
    chart.append(svg("line", { class: "grid", x1: xOf(mark), x2: xOf(mark), y1: box.top, y2: box.bottom }));
    if (xOf(mark) - half < free) continue;
    free = xOf(mark) + half + 6;
    chart.append(svg("text", { x: xOf(mark), y: box.bottom + 18, "text-anchor": "middle", class: "quiet-text" }, text));
  }
  for (const mark of yMarks)
    chart.append(
      svg("line", { class: "grid", x1: box.left, x2: box.right, y1: yOf(mark), y2: yOf(mark) }),
      svg("text", { x: box.left - 8, y: yOf(mark) + 4, "text-anchor": "end", class: "quiet-text" }, machine ? (mark >= 1 ? whole(mark) : String(mark)) : scaled(mark, 1000, ["B", "kB", "MB", "GB", "TB"])),
    );
  chart.append(
    svg("text", { x: (box.left + box.right) / 2, y: height - 10, "text-anchor": "middle", class: "quiet-text" }, "arithmetic intensity, FLOP/byte"),
    svg("text", { x: box.left - 60, y: 18, class: "quiet-text" }, machine ? "GFLOP/s" : "bytes in a step"),
  );
  for (const compute of ceilings) {
    const ridge = compute < Infinity ? compute / machine.bandwidth : null;
    const last = xMarks[xMarks.length - 1];
    const roof = (x) => Math.max(yMarks[0], Math.min(compute, x * machine.bandwidth, yMarks[yMarks.length - 1] * 1e9) / 1e9);
    const top = ridge || Math.min(last, (yMarks[yMarks.length - 1] * 1e9) / machine.bandwidth);
    const first = Math.max(xMarks[0], (yMarks[0] * 1e9) / machine.bandwidth);
    const isLate = ridge && xOf(ridge) > box.right - 180;
    chart.append(
      svg("path", { class: "roof", d: `M${xOf(first)} ${yOf(roof(first))} L${xOf(top)} ${yOf(roof(top))}${ridge ? ` L${xOf(last)} ${yOf(roof(last))}` : ""}` }),
      ...(ridge
        ? [
            svg("line", { class: "ridge", x1: xOf(ridge), x2: xOf(ridge), y1: yOf(roof(ridge)), y2: box.bottom }),
            svg("text", { x: xOf(ridge) + (isLate ? -6 : 6), y: box.bottom - 8 - 16 * ceilings.indexOf(compute), class: "quiet-text", "text-anchor": isLate ? "end" : null }, `ridge${ceilings.length > 1 ? (compute === machine.f32 ? " of f32" : " of int8") : ""} at ${ridge.toPrecision(3)} FLOP/byte`),
          ]
        : []),
    );
  }
  for (const point of points) Object.assign(point, { cx: xOf(point.x), cy: yOf(point.y) });
  // A measured point hangs from the roof.
  for (const point of points)
    if (point.isMeasured) {
      const roof = Math.min(point.compute, point.x * machine.bandwidth) / 1e9;
      chart.append(svg("line", { class: "ridge", x1: point.cx, x2: point.cx, y1: point.cy, y2: yOf(Math.min(roof, yMarks[yMarks.length - 1])) }));
    }
  const hasMeasured = points.some((point) => point.isMeasured);
  const dots = points.map((point) => {
    const color = familyColor(point.family);
    const isRing = hasMeasured && !point.isMeasured;
    return svg("circle", { class: point.isMeasured ? "dot measured" : isRing ? "dot ring" : "dot", cx: point.cx, cy: point.cy, r: 6, style: isRing ? `stroke:${color}` : `fill:${color}` });
  });
  chart.append(...dotNumbers(points), ...dots);
  const live = el("div", { class: "live", "aria-live": "polite" }, "Choose a kernel with a click or the arrow keys.");
  listbox(chart, dots, "Kernels by arithmetic intensity", (index) => {
    const point = points[index];
    dots.forEach((dot, i) => dot.classList.toggle("active", i === index));
    live.textContent = `${point.number ? `${point.number}. ` : ""}${point.name}: ${point.x.toPrecision(3)} FLOP/byte${point.text}`;
  });
  const families = [...new Set(points.map((point) => point.family))];
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
