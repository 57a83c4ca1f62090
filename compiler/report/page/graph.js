// The operations of one layer before and after fusion, drawn top to bottom:
// every operation stands below those whose values it reads.

const graphKinds = [
  [/linear|matmul|qkv/, "--c0", "products"],
  [/attention|softmax|scale|mask/, "--c3", "attention"],
  [/norm/, "--c2", "norms"],
  [/rope|cache/, "--c5", "rotary embedding and cache"],
  [/heads|gather/, "--c7", "changes of view"],
  [/./, "--c1", "element by element"],
];

function showGraphs(report, body) {
  if (!report.imported) {
    body.append(el("p", { class: "note" }, "A plan holds no graph: this needs the model."));
    return;
  }
  const count = (graph) => graph.nodes.filter((node) => node.kind === "op").length;
  const detail = el("div", { class: "detail", id: "graph-detail", "aria-live": "polite" }, el("span", { class: "quiet" }, "Choose an operation to see it in full."));
  const drawings = [
    [report.imported, "As imported"],
    [report.fused, "After fusion"],
  ].map(([graph, title]) =>
    el("div", { class: "graph" }, el("h3", {}, `${title}: ${count(graph)} ops`), drawGraph(graph, `Layer ${graph.layer} ${title.toLowerCase()}`, detail)),
  );
  const widths = drawings.map((drawing) => drawing.querySelector("svg").getAttribute("width"));
  const kinds = graphKinds.filter(([pattern]) =>
    [report.imported, report.fused].some((graph) => graph.nodes.some((node) => node.op && kindOf(node) === graphKinds.find((kind) => kind[0] === pattern))),
  );
  body.append(
    el(
      "p",
      { class: "quiet" },
      `Layer ${report.imported.layer} as the frontend builds it, one op for each formula, and as the fuse phase leaves it, one op for each launch. ` +
        "Dashed boxes are values from and for the rest of the model. Arrow keys go from op to op.",
    ),
    legend(kinds.map(([, color, name]) => [`var(${color})`, name])),
    el("div", { class: "graphs", style: `grid-template-columns:${widths.map((width) => `${width}fr`).join(" ")}` }, drawings[0], el("div", {}, drawings[1], detail)),
  );
}

function kindOf(node) {
  return graphKinds.find(([pattern]) => pattern.test(node.op));
}

// --- Layout ------------------------------------------------------------------

const rankGap = 26;
const nodeGap = 16;

// Ranks: every node one below the lowest node it reads; inputs above their
// highest reader, where there is room. Edges over several ranks go through points in between.
function layoutGraph(graph) {
  const cells = graph.nodes.map((node, index) => ({ node, index, rank: 0, ...sizeOf(node) }));
  for (const edge of graph.edges) if (graph.nodes[edge.from].kind !== "input") (cells[edge.to].reads ||= []).push(edge.from);
  const isInput = (cell) => cell.node.kind === "input";
  // Nodes stand in the order of execution, so makers have their rank.
  for (const cell of cells) for (const from of cell.reads || []) cell.rank = Math.max(cell.rank, cells[from].rank + 1);
  for (const cell of cells) if (!isInput(cell)) cell.rank += 1;
  for (const cell of cells)
    if (isInput(cell)) cell.rank = Math.min(...graph.edges.filter((edge) => edge.from === cell.index).map((edge) => cells[edge.to].rank)) - 1;
  spreadInputs(cells.filter(isInput), cells);

  const ranks = [];
  const put = (cell) => (ranks[cell.rank] ||= []).push(cell);
  cells.forEach(put);
  const routes = graph.edges.map((edge) => {
    const route = [cells[edge.from]];
    for (let rank = cells[edge.from].rank + 1; rank < cells[edge.to].rank; ++rank) {
      const point = { rank, width: 10, height: 0, isPoint: true };
      put(point);
      route.push(point);
    }
    route.push(cells[edge.to]);
    for (let i = 1; i < route.length; ++i) {
      (route[i - 1].below ||= []).push(route[i]);
      (route[i].above ||= []).push(route[i - 1]);
    }
    return { edge, route };
  });
  orderRanks(ranks);
  placeCells(ranks);
  return { cells, ranks, routes };
}

// Moves inputs up to two ranks up, to the narrowest.
function spreadInputs(inputs, cells) {
  const widthOf = (rank) => sum(cells.filter((cell) => cell.rank === rank), (cell) => cell.width + nodeGap);
  for (const cell of inputs) {
    const lowest = cell.rank;
    cell.rank = -1;
    const choices = [lowest, lowest - 1, lowest - 2].filter((rank) => rank >= 0);
    cell.rank = choices.reduce((best, rank) => (widthOf(rank) < widthOf(best) ? rank : best));
  }
}

// The lines in a node: what it is, then more quietly its place and weights. The
// name of a weight that is the op's own is left out.
function textsOf(node) {
  if (node.kind !== "op") return [node.label, node.type];
  const weights = node.weights.map((weight) => (weight.startsWith(`${node.label} `) ? weight.slice(node.label.length + 1) : weight));
  return [node.op, node.label, ...weights];
}

function sizeOf(node) {
  const isOp = node.kind === "op";
  const texts = textsOf(node);
  const longest = Math.max(...texts.map((text, i) => text.length * (i ? 6.6 : isOp ? 8.3 : 7.2)));
  return { width: Math.max(70, Math.ceil(longest) + 22), height: 16 * texts.length + 10 };
}

// Sorts every rank by the mean position of its neighbours, down and up in turn,
// which leaves few crossings.
function orderRanks(ranks) {
  const number = () => ranks.forEach((rank) => rank.forEach((cell, i) => (cell.order = i)));
  number();
  for (let sweep = 0; sweep < 12; ++sweep) {
    const side = sweep % 2 ? "below" : "above";
    for (const rank of sweep % 2 ? [...ranks].reverse() : ranks) {
      for (const cell of rank) {
        const near = cell[side];
        cell.weight = near ? sum(near, (other) => other.order / ranks[other.rank].length) / near.length : cell.order / rank.length;
      }
      rank.sort((a, b) => a.weight - b.weight);
      rank.forEach((cell, i) => (cell.order = i));
    }
  }
}

// Gives cells their x, the middle, near that of their neighbours, and y, the
// top.
function placeCells(ranks) {
  for (const rank of ranks) {
    let x = 0;
    for (const cell of rank) {
      cell.x = x + cell.width / 2;
      x += cell.width + nodeGap;
    }
    const middle = (x - nodeGap) / 2;
    for (const cell of rank) cell.x -= middle;
  }
  for (let sweep = 0; sweep < 40; ++sweep)
    for (const rank of sweep % 2 ? [...ranks].reverse() : ranks) {
      for (const cell of rank) {
        const near = [...(cell.above || []), ...(cell.below || [])];
        const total = sum(near, (other) => pull(cell, other));
        cell.wish = total ? sum(near, (other) => other.x * pull(cell, other)) / total : cell.x;
      }
      pack(rank);
    }
  let y = 0;
  for (const rank of ranks) {
    const height = Math.max(...rank.map((cell) => cell.height));
    for (const cell of rank) cell.y = y + (height - cell.height) / 2;
    y += height + rankGap;
  }
}

// How strongly two neighbours want to stand above each other: long edges most,
// so that they are straight, inputs least.
function pull(a, b) {
  if (a.isPoint && b.isPoint) return 8;
  if ([a, b].some((cell) => !cell.isPoint && cell.node.kind !== "op")) return 0.2;
  return a.isPoint || b.isPoint ? 1 : 3;
}

// Puts the cells of a rank as near to their wishes as their widths allow: cells
// that would overlap become a block at the mean of its wishes.
function pack(rank) {
  const blocks = [];
  for (const cell of rank) {
    let block = { cells: [cell], width: cell.width, start: cell.wish - cell.width / 2 };
    while (blocks.length) {
      const last = blocks[blocks.length - 1];
      if (last.start + last.width + nodeGap <= block.start) break;
      blocks.pop();
      const offset = last.width + nodeGap;
      const count = last.cells.length + block.cells.length;
      block = {
        cells: [...last.cells, ...block.cells],
        width: offset + block.width,
        start: (last.start * last.cells.length + (block.start - offset) * block.cells.length) / count,
      };
    }
    blocks.push(block);
  }
  for (const block of blocks) {
    let x = block.start;
    for (const cell of block.cells) {
      cell.x = x + cell.width / 2;
      x += cell.width + nodeGap;
    }
  }
}

// --- Drawing -----------------------------------------------------------------

function routePath(route) {
  const bottom = (cell) => cell.y + cell.height;
  let path = `M${route[0].x} ${bottom(route[0])}`;
  for (let i = 1; i < route.length; ++i) {
    const from = { x: route[i - 1].x, y: bottom(route[i - 1]) };
    const to = { x: route[i].x, y: route[i].y };
    const bend = Math.min(30, (to.y - from.y) / 2);
    path += ` C${from.x} ${from.y + bend} ${to.x} ${to.y - bend} ${to.x} ${to.y}`;
  }
  return path;
}

function drawGraph(graph, title, detail) {
  const { cells, ranks, routes } = layoutGraph(graph);
  const all = ranks.flat();
  const left = Math.min(...all.map((cell) => cell.x - cell.width / 2)) - 12;
  const right = Math.max(...all.map((cell) => cell.x + cell.width / 2)) + 12;
  const bottom = Math.max(...all.map((cell) => cell.y + cell.height)) + 12;
  const drawing = svg("svg", { viewBox: `${left} -12 ${right - left} ${bottom + 12}`, width: right - left, role: "group", "aria-label": title });
  const lines = routes.map(({ edge, route }) => {
    const line = svg("path", { class: "edge", d: routePath(route) });
    line.append(svg("title", {}, edge.type));
    drawing.append(line);
    return { edge, line };
  });
  const boxes = cells.map((cell) => drawNode(cell));
  drawing.append(...boxes);

  const choose = (index) => {
    for (const other of document.querySelectorAll(".node.chosen, .node.near, .edge.near")) other.classList.remove("chosen", "near");
    boxes.forEach((box, i) => box.setAttribute("tabindex", i === index ? "0" : "-1"));
    boxes[index].classList.add("chosen");
    for (const { edge, line } of lines)
      if (edge.from === index || edge.to === index) {
        line.classList.add("near");
        boxes[edge.from === index ? edge.to : edge.from].classList.add("near");
      }
    describeNode(graph, index, detail);
  };
  const first = cells.findIndex((cell) => cell.node.kind === "op");
  boxes.forEach((box, index) => {
    box.setAttribute("tabindex", index === first ? "0" : "-1");
    box.addEventListener("focus", () => choose(index));
    box.addEventListener("click", () => choose(index));
    box.addEventListener("keydown", (event) => {
      const next = neighbour(ranks, cells[index], event.key);
      if (!next) return;
      event.preventDefault();
      boxes[next.index].focus();
    });
  });
  return drawing;
}

// The node that an arrow key leads to from `cell`, if there is one.
function neighbour(ranks, cell, key) {
  const nodesOf = (rank) => (ranks[rank] || []).filter((other) => !other.isPoint);
  const at = nodesOf(cell.rank).indexOf(cell);
  if (key === "ArrowLeft") return nodesOf(cell.rank)[at - 1];
  if (key === "ArrowRight") return nodesOf(cell.rank)[at + 1];
  const step = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (!step) return null;
  const nearest = nodesOf(cell.rank + step).sort((a, b) => Math.abs(a.x - cell.x) - Math.abs(b.x - cell.x));
  return nearest[0];
}

function drawNode(cell) {
  const { node } = cell;
  const x = cell.x - cell.width / 2;
  const isOp = node.kind === "op";
  const name = isOp ? `${node.op}, ${node.label}` : `${node.kind} ${node.label}`;
  return svg(
    "g",
    { class: isOp ? "node" : "node end", role: "button", "aria-label": name, style: isOp ? `--kind:var(${kindOf(node)[1]})` : null },
    svg("rect", { class: "box", x, y: cell.y, width: cell.width, height: cell.height, rx: 4 }),
    isOp ? svg("rect", { class: "stripe", x, y: cell.y, width: 5, height: cell.height, rx: 2 }) : null,
    ...textsOf(node).map((text, i) =>
      svg("text", { x: x + 13, y: cell.y + 17 + 16 * i, "font-size": i === 0 ? 13 : 12, "font-weight": i === 0 && isOp ? 600 : null, class: i === 0 ? null : "quiet-text" }, text),
    ),
  );
}

function describeNode(graph, index, detail) {
  const node = graph.nodes[index];
  if (node.kind !== "op") {
    const role = node.kind === "input" ? "Made outside the layer:" : "Read outside the layer, by";
    detail.replaceChildren(el("strong", {}, `${role} ${node.label}`), `, ${node.type}`);
    return;
  }
  detail.replaceChildren(el("strong", {}, node.op), ` ${node.label}`, el("span", { class: "quiet" }, ` \u2192 ${node.type}`), el("pre", {}, node.text));
}
