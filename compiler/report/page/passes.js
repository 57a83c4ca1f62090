// The list of passes, and what the chosen one did to the IR, side by side.

const contextLines = 3;
const rowsAtOnce = 500;
const longestLine = 320;

function showPasses(report, body) {
  const { passes } = report;
  if (!passes) {
    body.append(el("p", { class: "note" }, "A plan holds no IR: what the passes did needs the model (llamac inspect MODEL --html)."));
    return;
  }
  const slowest = Math.max(...passes.steps.map((step) => step.seconds));
  const total = sum(passes.steps, (step) => step.seconds);
  body.append(
    el(
      "p",
      { class: "quiet" },
      `Every step in order, ${milliseconds(total)} together, measured in this one run and with the verifier after each pass. ` +
        "Ops are those of functions and programs, without weights; changed lines leave out values that only got another number. " +
        "Choose a step, with the arrow keys too, to see what it changed." +
        (passes.skipped.length ? ` Left out by --skip-pass: ${passes.skipped.join(", ")}.` : ""),
    ),
    el(
      "div",
      { class: "timeline-head", "aria-hidden": "true" },
      ...["Phase", "Step", "Time", "", "Ops", "Lines"].map((title, i) => el("span", { class: i > 2 ? "number" : null }, title)),
    ),
  );
  const rows = passes.steps.map((step, index) => timelineRow(step, index, slowest));
  const list = el("div", { class: "timeline", id: "timeline" }, ...rows);
  const detail = el("div", { id: "pass-detail" });
  body.append(list, detail);
  const choose = listbox(list, rows, "Passes", (index) => showStep(passes, passes.steps[index], detail));
  const changed = passes.steps.findIndex((step) => step.removed + step.added > 0);
  choose(Math.max(0, changed));
}

function timelineRow(step, index, slowest) {
  const changes = step.removed + step.added;
  const ops = index === 0 ? whole(step.ops_after) : `${whole(step.ops_before)} \u2192 ${whole(step.ops_after)}`;
  return el(
    "div",
    { "data-pass": step.name },
    el("span", { class: "phase" }, step.phase),
    el("span", {}, step.name),
    el("span", {}, el("span", { class: "bar", style: `width:${(100 * step.seconds) / slowest}%` })),
    el("span", { class: "number" }, milliseconds(step.seconds)),
    el("span", { class: "number" }, ops),
    changes
      ? el("span", { class: "number" }, el("span", { class: "minus" }, `\u2212${whole(step.removed)}`), " ", el("span", { class: "plus" }, `+${whole(step.added)}`))
      : el("span", { class: "number quiet" }, index === 0 ? "" : "no change"),
  );
}

function showStep(passes, step, detail) {
  const lines = (version) => passes.versions[version].map((number) => passes.lines[number]);
  const after = lines(step.after);
  const before = lines(step.before);
  const isChanged = step.before !== step.after;
  const head = el(
    "div",
    { class: "diff-head", role: "status" },
    el("h3", {}, step.name),
    el("span", { class: "quiet" }, isChanged ? `${whole(step.removed)} lines removed, ${whole(step.added)} added` : step.phase === "import" ? "the graph as the frontend builds it" : "the IR did not change"),
  );
  detail.replaceChildren(head);
  if (isChanged) detail.append(diffTable(before, after, step));
  const all = el("details", {}, el("summary", {}, `The whole IR after ${step.name}, ${whole(after.length)} lines`));
  all.addEventListener("toggle", () => {
    if (all.open && all.children.length === 1) all.append(el("pre", { class: "source", tabindex: "0" }, after.join("\n")));
  });
  all.open = !isChanged;
  detail.append(all);
}

// The parts of a diff in order: runs of kept lines, and changes with the lines
// they remove and add, by number.
function diffParts(runs) {
  const parts = [];
  let left = 0;
  let right = 0;
  const [signs, lengths] = runs;
  lengths.forEach((length, i) => {
    const sign = signs[i];
    if (sign === " ") {
      parts.push({ kept: length, left, right });
      left += length;
      right += length;
      return;
    }
    let part = parts[parts.length - 1];
    if (!part || part.kept !== undefined) {
      part = { left, right, removed: 0, added: 0 };
      parts.push(part);
    }
    if (sign === "-") {
      part.removed += length;
      left += length;
    } else {
      part.added += length;
      right += length;
    }
  });
  return parts;
}

// A line without the names of values and the numbers of layers: the changes of
// two layers that do the same are equal.
function withoutNames(line) {
  return line
    .replace(/%[\w$.#-]+/g, "%")
    .replace(/layers\.\d+/g, "layers")
    .replace(/layer( =)? \d+/g, "layer");
}

// Rows { left, right, kind } of the table. Rows far from a change, and changes
// that repeat an earlier one, are hidden.
function diffRows(before, after, parts) {
  const seen = new Set();
  for (const part of parts) {
    if (part.kept !== undefined) continue;
    const lines = [...before.slice(part.left, part.left + part.removed), "->", ...after.slice(part.right, part.right + part.added)];
    const key = lines.map(withoutNames).join("\n");
    part.repeats = seen.has(key);
    seen.add(key);
  }
  const isShown = (part) => part && part.kept === undefined && !part.repeats;
  const rows = [];
  parts.forEach((part, at) => {
    if (part.kept === undefined) {
      for (let i = 0; i < Math.max(part.removed, part.added); ++i)
        rows.push({
          left: i < part.removed ? part.left + i : null,
          right: i < part.added ? part.right + i : null,
          hidden: part.repeats,
          repeats: part.repeats && i === 0,
          changed: true,
        });
      return;
    }
    for (let i = 0; i < part.kept; ++i) {
      const isNear = (isShown(parts[at - 1]) && i < contextLines) || (isShown(parts[at + 1]) && i >= part.kept - contextLines);
      rows.push({ left: part.left + i, right: part.right + i, hidden: !isNear });
    }
  });
  return rows;
}

// A line with half its indentation, and no more of a constant than fits.
function shownLine(line) {
  const text = line.replace(/^ +/, (indent) => indent.slice(indent.length / 2));
  const rest = text.length - longestLine;
  return rest > 0 ? `${text.slice(0, longestLine)} \u2026 ${whole(rest)} more characters` : text;
}

function diffTable(before, after, step) {
  const rows = diffRows(before, after, diffParts(step.runs));
  const body = el("tbody", {});
  const lineRow = (row) => {
    const side = (number, lines, changed, kind) => {
      const state = number === null ? "none" : changed ? kind : kind === "added" ? "same" : "";
      return [
        el("td", { class: `no ${kind === "added" ? "right-no" : ""} ${state}` }, number === null ? "" : whole(number + 1)),
        el("td", { class: state || null }, number === null ? "" : shownLine(lines[number])),
      ];
    };
    return el("tr", {}, ...side(row.left, before, row.changed, "removed"), ...side(row.right, after, row.changed, "added"));
  };
  // `reveal` gives the rows that stand in the place of the button.
  const foldRow = (text, reveal) => {
    const button = el("button", { type: "button" }, text);
    const row = el("tr", { class: "fold" }, el("td", { colspan: "4" }, button));
    button.addEventListener("click", () => {
      const content = reveal();
      const place = row.closest(".diff");
      row.replaceWith(...content);
      const next = content.find((line) => line.className === "fold");
      (next ? next.querySelector("button") : place).focus({ preventScroll: true });
    });
    return row;
  };
  const chunked = (list) =>
    list.length <= rowsAtOnce
      ? list.map(lineRow)
      : [...list.slice(0, rowsAtOnce).map(lineRow), foldRow(`Show the next ${whole(Math.min(rowsAtOnce, list.length - rowsAtOnce))} of ${whole(list.length - rowsAtOnce)} lines`, () => chunked(list.slice(rowsAtOnce)))];
  const foldText = (list) => {
    const repeats = list.filter((row) => row.repeats).length;
    const kept = list.filter((row) => !row.changed).length;
    const unchanged = `${whole(kept)} unchanged ${kept === 1 ? "line" : "lines"}`;
    if (!repeats) return `\u22ef ${unchanged}`;
    return `\u22ef ${whole(repeats)} ${repeats === 1 ? "change" : "changes"} like those above${kept ? `, ${unchanged}` : ""}`;
  };
  for (let at = 0; at < rows.length; ) {
    let end = at;
    while (end < rows.length && rows[end].hidden === rows[at].hidden) ++end;
    const group = rows.slice(at, end);
    if (rows[at].hidden && group.length > 1) body.append(foldRow(foldText(group), () => chunked(group)));
    else body.append(...chunked(group));
    at = end;
  }
  return el(
    "div",
    { class: "diff", tabindex: "0", role: "region", "aria-label": `What ${step.name} changed` },
    el(
      "table",
      {},
      el("colgroup", {}, el("col", { class: "no" }), el("col"), el("col", { class: "no" }), el("col")),
      el("thead", {}, el("tr", {}, el("th", { colspan: "2", scope: "colgroup" }, "Before"), el("th", { colspan: "2", scope: "colgroup" }, "After"))),
      body,
    ),
  );
}
