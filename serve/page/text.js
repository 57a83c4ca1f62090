// The text of an answer as elements: marked reads its markdown, highlight.js colours
// its code, and what they write goes through DOMPurify. HTML in an answer is text,
// pictures are links and are not loaded, and links lead to the web or to mail.

// Longer lines and paragraphs are shown as they are, and emphasis reaches no further
// than this: marked's time grows with the square of the length.
const LONG_LINE = 10_000;
const LONG_TEXT = 20_000;
const LONG_EMPHASIS = 2_000;

// Quotes, lists and emphasis that are nested deeper are shown as text.
const DEEPEST = 12;

// Lines of code, and items of a list, that the browser lays out as one.
const CHUNK = 200;

// The languages that highlight.js knows by another name.
const LANGUAGES = new Map(
  Object.entries({ cu: "cpp", cuda: "cpp", jsonc: "json", jsonl: "json", tsx: "typescript", vue: "xml" }),
);

// Stands for a tab at the beginning of a line of code: marked makes spaces of tabs.
const TAB = "\ue009";

const ALLOWED = {
  ALLOWED_TAGS: [
    ..."a blockquote br code del div em h3 h4 h5 h6 hr li ol p pre span strong".split(" "),
    ..."table tbody td th thead tr ul".split(" "),
  ],
  ALLOWED_ATTR: ["aria-label", "class", "href", "role", "scope", "start", "tabindex"],
  ADD_URI_SAFE_ATTR: ["aria-label", "scope", "start", "tabindex"],
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

function escaped(text) {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

// --- Markdown ------------------------------------------------------------------

// Else it warns that its version is old.
hljs.configure({ hideUpgradeWarningAcceptNoSupportOrSecurityUpdates: true });

marked.use({
  headerIds: false,
  mangle: false,
  // Tokenizers that give nothing leave their input as text.
  tokenizer: {
    def() {},
    html() {},
    lheading() {},
    tag(text) {
      const match = /^<br ?\/?>/i.exec(text);
      return match ? { type: "br", raw: match[0] } : undefined;
    },
    emStrong(text, masked, before) {
      const begin = masked.length - text.length;
      const near = masked.slice(begin, begin + LONG_EMPHASIS);
      return marked.Tokenizer.prototype.emStrong.call(this, text.slice(0, LONG_EMPHASIS), near, before);
    },
  },
  renderer: {
    // The page's own headings come first.
    heading(text, level) {
      const tag = `h${Math.min(6, level + 2)}`;
      return `<${tag} class="level-${level}">${text}</${tag}>`;
    },
    // Links within a link are only text.
    link(address, title, text) {
      return marked.Renderer.prototype.link.call(this, address, null, text.replace(/<\/?a\b[^>]*>/g, ""));
    },
    image(address, title, text) {
      return this.link(address, null, text || "picture");
    },
    table: (head, body) =>
      `<div class="wide" tabindex="0" role="group" aria-label="Table">` +
      `<table><thead>${head}</thead><tbody>${body}</tbody></table></div>`,
    tablecell(text, { header, align }) {
      const kind = align && align !== "left" ? ` class="${align}"` : "";
      return header ? `<th scope="col"${kind}>${text}</th>` : `<td${kind}>${text}</td>`;
    },
  },
});

// marked's reader with limits.
class Reader extends marked.Lexer {
  depth = 0;

  blockTokens(text, tokens = []) {
    if (this.depth < DEEPEST) return this.deeper(() => super.blockTokens(text, tokens));
    this.state.top = true;
    tokens.push({ type: "paragraph", raw: text, text, tokens: this.inline(text.trim()) });
    return tokens;
  }

  // White space at the end of a paragraph is no part of it.
  inlineTokens(untrimmed, tokens = []) {
    const text = this.depth === 0 ? untrimmed.trimEnd() : untrimmed;
    if (this.depth < DEEPEST && text.length < LONG_TEXT) return this.deeper(() => super.inlineTokens(text, tokens));
    tokens.push({ type: "text", raw: text, text: escaped(text) });
    return tokens;
  }

  deeper(read) {
    ++this.depth;
    try {
      return read();
    } finally {
      --this.depth;
    }
  }
}

function readerOf(text) {
  return new Reader({ ...marked.defaults, gfm: !text.split("\n").some((line) => line.length > LONG_LINE) });
}

// The blocks of `text`.
function blocksOf(text) {
  const reader = readerOf(text);
  const blocks = reader.blockTokens(text.endsWith("\n") ? text : `${text}\n`);
  // Not by lex(), which takes the first of the queue each time, in time that grows with it.
  for (const { src, tokens } of reader.inlineQueue) reader.inlineTokens(src, tokens);
  settleLists(blocks);
  return blocks.filter((block) => block.type !== "space");
}

// All text of items becomes paragraphs, however far apart the items are: so an item looks
// the same whatever comes behind it.
function settleLists(blocks) {
  for (const block of blocks) {
    if (block.type === "blockquote") settleLists(block.tokens);
    if (block.type !== "list") continue;
    block.loose = true;
    for (const item of block.items) {
      for (const child of item.tokens) if (child.type === "text") child.type = "paragraph";
      if (item.task && item.tokens[0]?.type === "paragraph") {
        const [label, box] = item.checked ? ["done", "\u2611"] : ["not done", "\u2610"];
        const html = `<span class="box" role="img" aria-label="${label}">${box}</span> `;
        item.tokens[0].tokens.unshift({ type: "html", text: html });
      }
      item.task = false;
      settleLists(item.tokens);
    }
  }
}

// The complete part of `text`, all but the last block or but its last item if
// it is a list of several: its length, and the blocks.
function completeBlocks(text) {
  let begin = 0;
  let end = 0;
  let last = null;
  for (const block of readerOf(text).blockTokens(text)) {
    if (block.type !== "space") {
      last = block;
      begin = end;
    }
    // The reader doubles a line's end before an indented line of a paragraph.
    const raw = block.type === "paragraph" ? block.raw.replace(/\n\n(?=.)/g, "\n") : block.raw;
    end += raw.length;
  }
  const isItem = last?.type === "list" && last.items.length > 1;
  if (isItem) begin += sum(last.items.slice(0, -1), (item) => item.raw.length);
  if (begin === 0) return { length: 0, blocks: [] };
  const blocks = blocksOf(text);
  last = blocks.pop();
  if (isItem) blocks.push({ ...last, items: last.items.slice(0, -1) });
  return { length: begin, blocks, isItem };
}

// `text` without returns, and with spaces for the tabs that indent lines; those that
// indent code are kept as TAB.
function withoutTabs(text) {
  const lines = text.replaceAll("\r", "");
  if (!lines.includes("\t")) return lines;
  let fence = null; // The mark that begins the code of this line, and its indentation.
  return lines.replace(/^([ \t]*)(.*)$/gm, (_, indent, rest) => {
    const mark = /^(?:[-*+][ \t]+|\d+[.)][ \t]+)?(`{3,}|~{3,})/.exec(rest)?.[1];
    const own = fence && !mark ? fence.indent.length : indent.length;
    if (!fence && mark) fence = { mark, indent };
    else if (mark?.startsWith(fence?.mark)) fence = null;
    return indent.slice(0, own).replaceAll("\t", "    ") + indent.slice(own).replaceAll("\t", TAB) + rest;
  });
}

// --- Elements ------------------------------------------------------------------

// The only way from text with marks to elements.
function clean(html) {
  return DOMPurify.sanitize(html, ALLOWED);
}

// Not by append(...nodes): more than some 100,000 arguments are too many.
function appendAll(element, nodes) {
  for (const node of nodes) element.append(node);
  return element;
}

// The elements of `blocks`.
function elementsOf(blocks) {
  const fragment = clean(marked.parser(blocks).replaceAll(TAB, "\t"));
  for (const link of fragment.querySelectorAll("a")) {
    const { href } = link;
    if (!href) link.replaceWith(...link.childNodes);
    else fill(link, { rel: "noopener noreferrer", target: "_blank", title: href }, []);
  }
  for (const text of fragment.querySelectorAll("pre")) {
    const language = text.firstChild.className.slice("language-".length);
    const view = new CodeView(language);
    view.update(text.textContent.slice(0, -1), true);
    text.replaceWith(view.element);
  }
  return [...fragment.children];
}

// A code block whose text may grow: a head with the language and a button that copies,
// and the text in colours. Lines are coloured one by one, each from the state that the
// one before left, so that what is shown stays as it is. Long code is cut into chunks,
// so that the browser lays out only what is in sight.
class CodeView {
  constructor(info) {
    this.language = languageOf(info);
    const name = LANGUAGES.get(this.language) || this.language;
    this.colours = hljs.getLanguage(name) ? name : null;
    this.state = undefined; // The state of highlight.js at the end of what is
                            // shown for good.
    this.text = "";
    this.done = 0; // Characters that are shown for good.
    this.tail = [];
    this.code = el("code");
    this.lines = CHUNK;
    const copy = copyButton("Copy code", () => this.text);
    const title = this.language || "text";
    const head = el("div", { class: "code-head" }, el("span", {}, title), copy);
    const text = el("pre", { tabindex: "0", role: "group", "aria-label": `Code, ${title}` }, this.code);
    this.element = el("div", { class: "code" }, head, text);
  }

  update(text, finished) {
    for (const node of this.tail) node.remove();
    this.tail = [];
    this.text = text;
    // The last line may grow, and the end of the line before is no part of the text if
    // the fence comes next.
    const last = text.lastIndexOf("\n", text.lastIndexOf("\n") - 1);
    const end = finished ? text.length : last + 1;
    if (end > this.done) this.keep(codeLines(text.slice(this.done, end)));
    this.done = Math.max(this.done, end);
    if (finished) return;
    const { state } = this;
    this.tail = this.show(codeLines(text.slice(this.done)));
    this.state = state;
  }

  keep(lines) {
    for (let begin = 0; begin < lines.length; ) {
      if (this.lines === CHUNK) {
        this.chunk = el("span", { class: "chunk" });
        this.code.append(this.chunk);
        this.lines = 0;
      }
      const part = lines.slice(begin, begin + CHUNK - this.lines);
      this.show(part);
      this.lines += part.length;
      begin += part.length;
    }
  }

  show(lines) {
    const nodes = [...clean(lines.map((line) => this.colour(line)).join("")).childNodes];
    appendAll(this.chunk || this.code, nodes);
    return nodes;
  }

  colour(line) {
    if (!this.colours || line.length > LONG_LINE) return escaped(line);
    const { value, top } = hljs.highlight(this.colours, line, true, this.state);
    this.state = top;
    return value;
  }
}

function languageOf(info = "") {
  return /\S*/.exec(info)[0].toLowerCase();
}

function codeLines(text) {
  return text.match(/[^\n]*\n|[^\n]+/g) || [];
}

// --- Text that grows -----------------------------------------------------------

// Shows markdown that grows at its end. A block is finished when a complete line has
// begun the next one, and so is an item of a list: only what may still change is read
// and drawn again.
class MarkdownView {
  constructor(host) {
    this.host = host;
    this.done = 0; // Characters that are shown for good.
    this.list = null; // The last finished element, if it is a list that goes on.
    this.tail = []; // Elements of the rest.
    this.code = null; // The view of the code block that the rest begins with.
  }

  update(text, finished) {
    for (const node of this.tail) if (node !== this.code?.element) node.remove();
    this.tail = [];
    const rest = withoutTabs(text).slice(this.done);
    if (finished) {
      this.done = text.length;
      this.show(blocksOf(rest), true);
      return;
    }
    const { length, blocks, isItem } = completeBlocks(rest.slice(0, rest.lastIndexOf("\n") + 1));
    if (length > 0) this.show(blocks, true);
    if (length > 0 && !isItem) this.list = null;
    this.done += length;
    const { list } = this;
    this.tail = this.show(blocksOf(withClosedBold(rest.slice(length))), false);
    this.list = list;
  }

  // Appends `blocks`, the first of which may go on with a list or a code block that is
  // shown. Gives the new elements.
  show(blocks, finished) {
    const nodes = [];
    let plain = []; // Blocks that become elements together.
    const add = (elements) => {
      appendAll(this.host, elements);
      for (const element of elements) nodes.push(element);
    };
    const flush = () => {
      if (plain.length) add(elementsOf(plain));
      plain = [];
    };
    if (blocks[0]?.type !== "code" || languageOf(blocks[0].lang) !== this.code?.language) this.dropCode();
    for (const [i, block] of blocks.entries()) {
      if (i > 0) this.list = null;
      if (block.type === "list") {
        flush();
        this.showList(block, nodes);
      } else if (block.type === "code") {
        flush();
        const goesOn = i === 0 && this.code;
        const view = goesOn || new CodeView(block.lang);
        view.update(block.text.replaceAll(TAB, "\t"), finished);
        if (!goesOn) add([view.element]);
        if (i === 0) this.code = finished ? null : view;
      } else plain.push(block);
    }
    flush();
    return nodes;
  }

  // Long lists are cut, so that the browser lays out only what is in sight.
  showList(block, nodes) {
    const [{ localName, children }] = elementsOf([block]);
    for (const item of [...children]) {
      if (!this.list || this.list.childElementCount === CHUNK) {
        const first = !block.ordered ? 1 : this.list ? this.list.start + CHUNK : block.start;
        const list = { class: this.list ? "more" : null, start: first === 1 ? null : first };
        this.list = el(localName, list);
        this.host.append(this.list);
        nodes.push(this.list);
      }
      this.list.append(item);
      nodes.push(item);
    }
  }

  dropCode() {
    this.code?.element.remove();
    this.code = null;
  }
}

// `text` whose bold end is bold before its ** has come, so that it does not change then.
function withClosedBold(text) {
  const line = text.slice(text.lastIndexOf("\n") + 1).replace(/`[^`]*`/g, "");
  const isOpen = line.split("**").length % 2 === 0 && /(?:^|[\s(])\*\*[^\s*][^`]*$/.test(line) && /[^\s*]$/.test(line);
  return isOpen && !text.includes("```") ? `${text}**` : text;
}
