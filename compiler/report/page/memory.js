// This file shows the memory of a run, and the layout of each program's arena,
// launch by launch.

const intervalsInWindow = 40;

// [what, bytes, more about it] of all that a run takes.
function memoryParts(report) {
  const { kv } = report;
  const largest = report.programs.reduce((best, program) => (!best || program.arena_bytes > best.arena_bytes ? program : best), null);
  return [
    ["Weights", sum(report.weights, (format) => format.bytes), "as the kernels read them"],
    ["KV cache, when full", kv.bytes, `${count(kv.sequences, "sequence")} of ${count(kv.context, "token")}${kv.sequences === 1 ? "" : " each"}`],
    ["Workspace", largest ? largest.arena_bytes : 0, largest ? `the largest arena, of ${largest.name}` : ""],
  ];
}

function showMemory(report, body) {
  const parts = memoryParts(report);
  const total = sum(parts, ([, size]) => size);
  body.append(
    table(
      "A run takes, besides code and inputs",
      [["Part"], ["Details"], ["Size", "number"], ["Bytes", "number"], ["Share of all"]],
      parts.map(([what, size, more]) => [what, more, bytes(size), whole(size), shareBar(size / Math.max(1, total), 100)]),
      ["All", "", bytes(total), whole(total), ""],
    ),
    el("h3", {}, "Arenas"),
  );
  const hasLives = report.programs.some((program) => program.arena);
  body.append(
    el(
      "p",
      { class: "quiet" },
      hasLives
        ? "Each rectangle is a buffer: from the first to the last barrier interval that touches it, at its place in the arena. The launches between two barriers are one interval. Weights and the KV cache lie elsewhere."
        : "A plan records where in the arena launches begin to read and write, not how large buffers are and when they are live (which needs the model): each mark is a place that a launch touches.",
    ),
    programTabs(report, programMemory),
  );
}

function programMemory(report, program) {
  const panel = el("div", {});
  if (program.arena) {
    const { arena, without_reuse, lower_bound } = program.arena;
    const rows = [
      ["Arena, as planned", arena],
      ["Most live in one interval: no arena can be smaller", lower_bound],
      ["All buffers, without reuse", without_reuse],
    ].map(([what, size]) => [what, bytes(size), whole(size), shareBar(size / Math.max(1, without_reuse), 100)]);
    panel.append(table(null, [["Workspace"], ["Size", "number"], ["Bytes", "number"], ["Share of the size without reuse"]], rows));
  } else {
    panel.append(el("p", {}, `The arena has ${bytes(program.arena_bytes)} (${whole(program.arena_bytes)} B).`));
  }
  const intervals = program.launches.length ? program.launches[program.launches.length - 1].interval + 1 : 0;
  const place = el("div", {});
  const ranges = [[0, intervals]];
  if (intervals > intervalsInWindow * 1.5) for (let at = 0; at < intervals; at += intervalsInWindow) ranges.push([at, Math.min(intervals, at + intervalsInWindow)]);
  const choice = el("select", {}, ...ranges.map(([first, last], i) => el("option", { value: i }, i ? `intervals ${first} to ${last - 1}` : `all ${whole(intervals)} intervals`)));
  choice.value = "0";
  choice.addEventListener(
    "change",
    drawToFit(place, (width) => [memoryChart(report, program, ...ranges[Number(choice.value)], width)]),
  );
  panel.append(el("div", { class: "inputs" }, el("label", {}, "Show ", choice)), place);
  return panel;
}

function memoryChart(report, program, first, last, width) {
  const height = 400;
  const box = { left: 90, right: width - 20, top: 30, bottom: height - 46 };
  const xOf = (interval) => box.left + ((box.right - box.left) * (interval - first)) / (last - first);
  const yOf = (offset) => box.bottom - ((box.bottom - box.top) * offset) / Math.max(1, program.arena_bytes);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}` });
  for (const offset of byteMarks(program.arena_bytes)) {
    chart.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: yOf(offset), y2: yOf(offset) }), svg("text", { x: box.left - 8, y: yOf(offset) + 4, "text-anchor": "end", class: "quiet-text" }, bytes(offset)));
  }
  const apart = Math.max(1, Math.ceil((last - first) / (width / 100)));
  for (let interval = first; interval < last; interval += apart)
    chart.append(svg("line", { class: "grid", x1: xOf(interval), x2: xOf(interval), y1: box.bottom, y2: box.bottom + 5 }), svg("text", { x: xOf(interval), y: box.bottom + 19, class: "quiet-text" }, String(interval)));
  chart.append(
    svg("text", { x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle", class: "quiet-text" }, "barrier interval"),
    svg("line", { class: "limit", x1: box.left, x2: box.right, y1: yOf(program.arena_bytes), y2: yOf(program.arena_bytes) }),
    svg("text", { x: box.right, y: box.top - 8, "text-anchor": "end" }, `arena of ${program.name}: ${bytes(program.arena_bytes)}`),
  );
  const entries = program.arena ? bufferMarks(report, program, first, last, xOf, yOf) : touchMarks(report, program, first, last, xOf, yOf);
  chart.append(...entries.map((entry) => entry.mark));
  const live = el("div", { class: "live", "aria-live": "polite" }, `Choose a ${program.arena ? "buffer" : "mark"} with a click or the arrow keys.`);
  if (entries.length) {
    listbox(chart, entries.map((entry) => entry.mark), `Memory of ${program.name} over time`, (index) => {
      entries.forEach((entry, i) => entry.mark.classList.toggle("active", i === index));
      live.textContent = entries[index].text;
    });
  }
  const families = [...new Set(entries.map((entry) => entry.family))];
  return el("div", { class: "chart" }, chart, live, legend(families.map((family) => [familyColor(family), `${program.arena ? "made" : "touched"} by ${family}`])));
}

function bufferMarks(report, program, first, last, xOf, yOf) {
  const familyOf = new Map(report.kernels.map((kernel) => [kernel.name, kernel.family]));
  return program.arena.buffers
    .filter((buffer) => buffer.last_interval >= first && buffer.first_interval < last)
    .map((buffer) => {
      const family = familyOf.get(buffer.kernel);
      const x = xOf(Math.max(first, buffer.first_interval));
      const y = yOf(buffer.offset + buffer.bytes);
      const end = xOf(Math.min(last, buffer.last_interval + 1));
      const text = `${buffer.maker} by ${buffer.kernel}: ${bytes(buffer.bytes)} at ${whole(buffer.offset)}, intervals ${buffer.first_interval} to ${buffer.last_interval}`;
      const mark = svg("rect", { class: "buffer", x, y, width: end - x, height: Math.max(1.5, yOf(buffer.offset) - y), style: `fill:${familyColor(family)}` }, svg("title", {}, text));
      return { mark, text, family };
    });
}

function touchMarks(report, program, first, last, xOf, yOf) {
  return program.launches
    .filter((launch) => launch.interval >= first && launch.interval < last)
    .flatMap((launch) =>
      launch.offsets.map((offset) => {
        const kernel = report.kernels[program.uses[launch.use].kernel];
        const text = `${launch.label} by ${kernel.name} touches the arena at ${whole(offset)}, interval ${launch.interval}`;
        const x = xOf(launch.interval);
        const mark = svg("rect", { class: "buffer", x, y: yOf(offset) - 5, width: xOf(launch.interval + 1) - x, height: 5, style: `fill:${familyColor(kernel.family)}` }, svg("title", {}, text));
        return { mark, text, family: kernel.family };
      }),
    );
}
