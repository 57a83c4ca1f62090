// Markdown as elements. Text becomes text nodes and nothing else: no part of it is
// ever read as HTML. Pictures are not loaded, and links lead to the web or to mail.

// Quotes and lists that are nested deeper are shown as text.
const DEEPEST_BLOCK = 12;
const DEEPEST_INLINE = 24;

// Items of a list that the browser lays out as one.
const LIST_ITEMS = 200;

const FENCE = /^( {0,3})(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( +)|$)(.*)$/;
const DELIMITER = /^:?-+:?$/;

function isBlank(line) {
  return line.trim() === "";
}

function indentOf(line) {
  return line.length - line.trimStart().length;
}

function isTable(lines, i) {
  if (i + 1 >= lines.length || !lines[i].includes("|") || !lines[i + 1].includes("-")) return false;
  const delimiters = cellsOf(lines[i + 1]);
  return delimiters.every((cell) => DELIMITER.test(cell)) && cellsOf(lines[i]).length === delimiters.length;
}

// Whether line `i` ends the paragraph before it.
function interrupts(lines, i) {
  const line = lines[i];
  const item = ITEM.exec(line);
  const list = item !== null && item[4] !== "" && (item[2].length === 1 || parseInt(item[2], 10) === 1);
  return list || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || isTable(lines, i);
}

// The blocks of `lines`. Each has its kind and `begin`, its first line; a list's
// items have `begin` too.
function parseBlocks(lines, depth = 0) {
  const blocks = [];
  let i = 0;
  while (i < lines.length) {
    if (isBlank(lines[i])) {
      ++i;
      continue;
    }
    const block = parseBlock(lines, i, depth);
    blocks.push({ ...block, begin: i });
    i = block.end;
  }
  return blocks;
}

function parseBlock(lines, i, depth) {
  const line = lines[i];
  const fence = FENCE.exec(line);
  if (fence) return parseFence(lines, i, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    const text = (heading[2] || "").replace(/(^|[ \t])#+[ \t]*$/, "").trim();
    return { kind: "heading", level: heading[1].length, text, end: i + 1 };
  }
  if (RULE.test(line)) return { kind: "rule", end: i + 1 };
  if (depth < DEEPEST_BLOCK && QUOTE.test(line)) return parseQuote(lines, i, depth);
  if (depth < DEEPEST_BLOCK && ITEM.test(line)) return parseList(lines, i, depth);
  if (isTable(lines, i)) return parseTable(lines, i);
  if (indentOf(line) >= 4) return parseIndented(lines, i);
  let end = i + 1;
  while (end < lines.length && !isBlank(lines[end]) && !interrupts(lines, end)) ++end;
  return { kind: "paragraph", text: lines.slice(i, end).map((l) => l.trim()).join("\n"), end };
}

function parseFence(lines, i, [, indent, mark, info]) {
  const text = [];
  let end = i + 1;
  let closed = false;
  while (end < lines.length && !closed) {
    const line = lines[end++];
    const trimmed = line.trim();
    closed = trimmed.length >= mark.length && trimmed === mark[0].repeat(trimmed.length);
    if (!closed) text.push(line.slice(Math.min(indent.length, indentOf(line))));
  }
  return { kind: "code", language: info.trim().split(/\s/)[0].toLowerCase(), text: text.join("\n"), closed, end };
}

function parseIndented(lines, i) {
  let end = i + 1;
  while (end < lines.length && (isBlank(lines[end]) || indentOf(lines[end]) >= 4)) ++end;
  const text = lines.slice(i, end).map((line) => line.slice(Math.min(4, indentOf(line)))).join("\n").trimEnd();
  return { kind: "code", language: "", text, closed: false, end };
}

function parseQuote(lines, i, depth) {
  const inner = [];
  let end = i;
  while (end < lines.length && !isBlank(lines[end]) && (QUOTE.test(lines[end]) || !interrupts(lines, end)))
    inner.push(lines[end++].replace(QUOTE, ""));
  return { kind: "quote", blocks: parseBlocks(inner, depth + 1), end };
}

// Items may be indented less than CommonMark asks for: models write
// "1. a", then "  - b", and mean a list within the item.
function parseList(lines, i, depth) {
  const [, , bullet] = ITEM.exec(lines[i]);
  const ordered = bullet.length > 1;
  const list = { kind: "list", ordered, start: ordered ? parseInt(bullet, 10) : 1, items: [] };
  let end = i;
  while (end < lines.length) {
    const match = ITEM.exec(lines[end]);
    if (!match || RULE.test(lines[end]) || match[2].length > 1 !== ordered) break;
    const begin = end;
    const [, indent, mark, space, rest] = match;
    const content = indent.length + mark.length + (space && space.length <= 4 ? space.length : 1);
    const least = indent.length + 2;
    const inner = [rest];
    let blanks = 0;
    for (++end; end < lines.length; ++end) {
      const line = lines[end];
      if (isBlank(line)) {
        ++blanks;
        continue;
      }
      const inside = indentOf(line) >= least;
      if (!inside && (blanks > 0 || ITEM.test(line) || interrupts(lines, end))) break;
      for (; blanks > 0; --blanks) inner.push("");
      inner.push(inside ? line.slice(Math.min(content, indentOf(line))) : line);
    }
    list.items.push({ begin, blocks: parseBlocks(inner, depth + 1) });
  }
  list.end = end;
  return list;
}

// The cells of a row: parted by |, which \| is not.
function cellsOf(line) {
  const row = line.trim().replace(/^\|/, "").replace(/([^\\]|^)\|$/, "$1");
  return row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function parseTable(lines, i) {
  const alignOf = (cell) => (!cell.endsWith(":") ? null : cell.startsWith(":") ? "center" : "right");
  const aligns = cellsOf(lines[i + 1]).map(alignOf);
  let end = i + 2;
  while (end < lines.length && !isBlank(lines[end]) && !interrupts(lines, end)) ++end;
  return { kind: "table", aligns, head: cellsOf(lines[i]), rows: lines.slice(i + 2, end).map(cellsOf), end };
}

// --- Within a line -------------------------------------------------------------

const SPECIAL = /[\\`*_~[\]!<&]|https?:\/\//g;
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": "\u00a0" };

// The address that `text` is, if a reader may be led there, else null.
function safeAddress(text) {
  try {
    const url = new URL(text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function link(address, ...children) {
  return el("a", { href: address, rel: "noopener noreferrer", target: "_blank", title: address }, ...children);
}

// Appends `text` with its marks to `host`. With `open`, ** that is not closed yet is
// taken as bold, so that text does not change when its end arrives.
function renderInline(host, text, open = false) {
  const stack = []; // Of what is not closed: {mark, node}.
  const missing = new Set(); // Lengths of runs of ` that do not come again.
  let pending = ""; // Text that is added as one.
  const flush = () => {
    const node = stack.length ? stack[stack.length - 1].node : host;
    if (pending) node.append(pending);
    pending = "";
    return node;
  };
  const add = (node) => {
    if (typeof node === "string") pending += node;
    else flush().append(node);
  };
  // The innermost open mark turns out to be text.
  const unwrap = () => {
    flush();
    const { mark, node } = stack.pop();
    add(mark);
    appendAll(flush(), [...node.childNodes]);
  };
  const close = (index) => {
    while (stack.length > index + 1) unwrap();
    flush();
    const { node } = stack.pop();
    add(node);
    return node;
  };
  const push = (mark, tag) => {
    flush();
    if (stack.length < DEEPEST_INLINE) stack.push({ mark, node: el(tag) });
    else add(mark);
  };
  // The innermost open mark that `fits`, as its place in the stack, or -1.
  const lastOpen = (fits) => {
    for (let i = stack.length - 1; i >= 0; --i) if (fits(stack[i].mark)) return i;
    return -1;
  };

  // Characters of `text` that mark nothing.
  const asText = (length) => {
    add(text.slice(at, at + length));
    return at + length;
  };

  let at = 0;
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const next = SPECIAL.exec(text);
    const end = next ? next.index : text.length;
    if (end > at) at = asText(end - at);
    const read = INLINE[text[at]] || inlineAddress;
    if (next) at = read({ text, at, add, asText, close, push, lastOpen, unwrap, stack, missing });
  }
  while (stack.length) {
    if (open && stack[stack.length - 1].mark === "**") close(stack.length - 1);
    else unwrap();
  }
  flush();
  return host;
}

// What `pattern`, which is sticky, finds in `text` at `at`, or null.
function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

// By first character: reads what begins at `at`, gives where to go on.
const INLINE = {
  "\\": ({ text, at, add, asText }) => {
    if (!/[!-/:-@[-`{-~]/.test(text[at + 1] || "")) return asText(1);
    add(text[at + 1]);
    return at + 2;
  },
  "`": ({ text, at, add, asText, missing }) => {
    const runs = /`+/g;
    const { length } = matchAt(runs, text, at)[0];
    if (missing.has(length)) return asText(length);
    for (let run = runs.exec(text); run; run = runs.exec(text)) {
      if (run[0].length !== length) continue;
      const code = text.slice(at + length, run.index).replaceAll("\n", " ");
      const padded = code.startsWith(" ") && code.endsWith(" ") && !isBlank(code);
      add(el("code", {}, padded ? code.slice(1, -1) : code));
      return run.index + length;
    }
    missing.add(length);
    return asText(length);
  },
  "*": inlineEmphasis,
  _: inlineEmphasis,
  "~": ({ text, at, asText, close, push, lastOpen }) => {
    if (text[at + 1] !== "~") return asText(1);
    const index = lastOpen((mark) => mark === "~~");
    if (index >= 0) close(index);
    else push("~~", "del");
    return at + 2;
  },
  "!": ({ text, at, asText, push }) => {
    if (text[at + 1] !== "[") return asText(1);
    push("![", "span");
    return at + 2;
  },
  "[": ({ at, push }) => {
    push("[", "span");
    return at + 1;
  },
  "]": ({ text, at, asText, close, lastOpen, unwrap, stack }) => {
    const index = lastOpen((mark) => mark.endsWith("["));
    if (index < 0) return asText(1);
    const target = /\]\([ \n]*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:[ \n]+"[^"]*")?[ \n]*\)/y;
    const match = matchAt(target, text, at);
    const address = match ? safeAddress(match[1]) : null;
    const { mark, node } = stack[index];
    if (!address) {
      if (index === stack.length - 1) unwrap();
      else {
        node.prepend(mark);
        stack[index].mark = "";
      }
      return asText(1);
    }
    close(index);
    // What stands within a link is no link, and a picture becomes a link to it.
    for (const inner of node.querySelectorAll("a")) inner.replaceWith(...inner.childNodes);
    if (mark === "![" && !node.hasChildNodes()) node.append("picture");
    node.replaceWith(appendAll(link(address), [...node.childNodes]));
    return at + match[0].length;
  },
  "<": ({ text, at, add, asText }) => {
    const match = matchAt(/<(?:(br) ?\/?|((?:https?:\/\/|mailto:)[^\s<>]+)|([\w.+-]+@[\w.-]+))>/iy, text, at);
    if (!match) return asText(1);
    const [all, lineBreak, address, mail] = match;
    const safe = lineBreak ? null : safeAddress(address || `mailto:${mail}`);
    if (!lineBreak && !safe) return asText(1);
    add(lineBreak ? el("br") : link(safe, address || mail));
    return at + all.length;
  },
  "&": ({ text, at, add, asText }) => {
    const match = matchAt(/&(?:amp|lt|gt|quot|#39|nbsp);/y, text, at);
    if (!match) return asText(1);
    add(ENTITIES[match[0]]);
    return at + match[0].length;
  },
};

// * and _ once for emphasis and twice for strong, by CommonMark's rules of what may
// open and what may close.
function inlineEmphasis({ text, at, asText, add, close, push, lastOpen }) {
  const mark = text[at];
  const [run] = matchAt(mark === "*" ? /\*+/y : /_+/y, text, at);
  // Long runs are lines drawn by hand.
  if (run.length > 3) return asText(run.length);
  const before = text[at - 1] || " ";
  const after = text[at + run.length] || " ";
  const space = /\s/;
  const punctuation = /[\p{P}\p{S}]/u;
  const beforeWord = !space.test(after) && (!punctuation.test(after) || space.test(before) || punctuation.test(before));
  const afterWord = !space.test(before) && (!punctuation.test(before) || space.test(after) || punctuation.test(after));
  const canOpen = beforeWord && (mark === "*" || !afterWord || punctuation.test(before));
  const canClose = afterWord && (mark === "*" || !beforeWord || punctuation.test(after));
  let rest = run.length;
  while (canClose && rest > 0) {
    let index = rest < 3 ? lastOpen((open) => open === mark.repeat(rest)) : -1;
    if (index < 0) index = lastOpen((open) => open[0] === mark && open.length <= rest);
    if (index < 0) break;
    rest -= close(index).localName === "strong" ? 2 : 1;
  }
  while (canOpen && rest > 0) {
    const length = rest === 2 ? 2 : 1;
    push(mark.repeat(length), length === 2 ? "strong" : "em");
    rest -= length;
  }
  add(mark.repeat(rest));
  return at + run.length;
}

function inlineAddress({ text, at, add, lastOpen }) {
  const [found] = matchAt(/https?:\/\/[^\s<>"'`|]*/y, text, at);
  // What ends the sentence is not part of it, nor a bracket that was opened before.
  const within = lastOpen((mark) => mark.endsWith("[")) >= 0;
  const bracket = found.search(within ? /[\])]/ : /\]/);
  let end = bracket < 0 ? found.length : bracket;
  const balanced = found.includes("(");
  while (end > 0 && (".,:;!?*_~".includes(found[end - 1]) || (found[end - 1] === ")" && !balanced))) --end;
  const address = found.slice(0, end);
  const safe = within ? null : safeAddress(address);
  add(safe ? link(safe, address) : address);
  return at + end;
}

// --- Elements ------------------------------------------------------------------

// Not by append(...nodes): more than some 100,000 arguments are too many.
function appendAll(element, nodes) {
  for (const node of nodes) element.append(node);
  return element;
}

function renderBlock(block, open) {
  switch (block.kind) {
    case "heading":
      // The page's own headings come first.
      return renderInline(el(`h${Math.min(6, block.level + 2)}`, { class: `level-${block.level}` }), block.text, open);
    case "rule":
      return el("hr");
    case "quote":
      return appendAll(el("blockquote"), renderBlocks(block.blocks, open));
    case "list": {
      const items = block.items.map((item, i) => renderItem(item, open && i === block.items.length - 1));
      return appendAll(el(block.ordered ? "ol" : "ul", { start: block.start === 1 ? null : block.start }), items);
    }
    case "table":
      return renderTable(block, open);
    case "code": {
      const view = new CodeView(block.language);
      view.update(block.text, true);
      return view.element;
    }
    default:
      return renderInline(el("p"), block.text, open);
  }
}

function renderBlocks(blocks, open) {
  return blocks.map((block, i) => renderBlock(block, open && i === blocks.length - 1));
}

const TASK = /^\[([ xX])\] /;

function renderItem(item, open) {
  const [first] = item.blocks;
  const task = first && first.kind === "paragraph" ? TASK.exec(first.text) : null;
  if (!task) return appendAll(el("li"), renderBlocks(item.blocks, open));
  const done = task[1] !== " ";
  const rest = { ...first, text: first.text.slice(4) };
  const node = appendAll(el("li", { class: "task" }), renderBlocks([rest, ...item.blocks.slice(1)], open));
  const box = { class: "box", role: "img", "aria-label": done ? "done" : "not done" };
  node.firstChild.prepend(el("span", box, done ? "\u2611" : "\u2610"), " ");
  return node;
}

function renderTable({ head, rows, aligns }, open) {
  const cell = (tag, i) => el(tag, { class: aligns[i], scope: tag === "th" ? "col" : null });
  const line = (tag, cells) => appendAll(el("tr"), head.map((_, i) => renderInline(cell(tag, i), cells[i] || "", open)));
  return el(
    "div",
    { class: "wide", tabindex: "0", role: "group", "aria-label": "Table" },
    el("table", {}, el("thead", {}, line("th", head)), appendAll(el("tbody"), rows.map((row) => line("td", row)))),
  );
}

// --- Text that grows -----------------------------------------------------------

// Shows markdown that grows at its end. A block is finished when a complete line has
// begun the next one, and so is an item of a list: only what may still change is
// parsed and rendered again.
class MarkdownView {
  constructor(host) {
    this.host = host;
    this.done = 0; // Characters that are shown for good.
    this.list = null; // The last finished element, if it is a list that may go on.
    this.tail = []; // Elements of the rest.
    this.code = null; // The view of the code block that the rest begins with.
  }

  update(text, finished) {
    for (const node of this.tail) if (node !== this.code?.element) node.remove();
    this.tail = [];
    const lines = text.slice(this.done).split("\n");
    if (finished) {
      for (const block of parseBlocks(lines)) this.append(block, block.items);
      this.dropCode();
      return;
    }
    const begin = this.finishBlocks(parseBlocks(lines.slice(0, -1)));
    this.done += lengthOf(lines.slice(0, begin));
    this.showTail(parseBlocks(lines.slice(begin)));
  }

  // Shows the blocks and items before the last one for good. Gives the line where
  // the last one begins.
  finishBlocks(blocks) {
    const last = blocks.pop();
    for (const block of blocks) this.append(block, block.items);
    if (!last) return 0;
    if (last.kind !== "list" || last.items.length === 1) return last.begin;
    this.append(last, last.items.slice(0, -1));
    return last.items.at(-1).begin;
  }

  // A finished block, or the finished `items` of a list.
  append(block, items) {
    if (block.kind === "code" && this.code?.language === block.language) {
      this.code.update(block.text, true);
      this.code = null;
      this.list = null;
      return;
    }
    this.dropCode();
    if (items) {
      for (const item of items) this.listFor(block).append(renderItem(item, false));
      return;
    }
    this.host.append(renderBlock(block, false));
    this.list = null;
  }

  // Where the next finished item of a list goes. Long lists are cut, so that the
  // browser lays out only what is in sight.
  listFor({ ordered, start }) {
    const goesOn = this.list?.localName === (ordered ? "ol" : "ul");
    if (goesOn && this.list.childElementCount < LIST_ITEMS) return this.list;
    const first = goesOn && ordered ? this.list.start + LIST_ITEMS : start;
    this.list = el(ordered ? "ol" : "ul", { class: goesOn ? "more" : null, start: first === 1 ? null : first });
    this.host.append(this.list);
    return this.list;
  }

  // The blocks that may still change.
  showTail(blocks) {
    const [first] = blocks;
    if (first?.kind !== "code" || this.code?.language !== first.language) this.dropCode();
    for (const [i, block] of blocks.entries()) {
      const open = i === blocks.length - 1;
      if (i === 0 && block.kind === "code") this.tail.push(this.showCode(block));
      else if (i === 0 && block.kind === "list" && this.list?.localName === (block.ordered ? "ol" : "ul")) {
        const items = block.items.map((item, k) => renderItem(item, open && k === block.items.length - 1));
        appendAll(this.list, items);
        this.tail = items;
      } else {
        const node = renderBlock(block, open);
        this.host.append(node);
        this.tail.push(node);
      }
    }
  }

  showCode(block) {
    if (!this.code) {
      this.code = new CodeView(block.language);
      this.host.append(this.code.element);
    }
    this.code.update(block.text, false);
    return this.code.element;
  }

  dropCode() {
    this.code?.element.remove();
    this.code = null;
  }
}

// The characters of complete lines.
function lengthOf(lines) {
  return lines.reduce((total, line) => total + line.length + 1, 0);
}
