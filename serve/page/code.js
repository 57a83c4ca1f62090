// Code blocks: a head with the language and a button that copies, and the text
// with its comments, strings, numbers and key words in colours.

const words = (text) => new Set(text.split(" "));

// Of many languages at once: what one has as a name, another has as a key word.
const KEYWORDS = words(
  "abstract alignas and as asm assert async await auto begin bool boolean break byte case catch char class concept " +
    "const consteval constexpr continue co_await co_return crate debugger declare def default defer del delete do " +
    "done double dyn echo elif else elsif end enum esac except export extends extern false False fi final finally " +
    "float fn for foreach from func function global go goto if impl implements import in include inline instanceof " +
    "int interface is lambda let local long loop match mod module move mut namespace new nil noexcept None nonlocal " +
    "not null nullptr of or override package pass private protected protocol pub public raise ref requires return " +
    "self short signed sizeof static str string struct super switch template then this throw trait true True try type " +
    "typedef typename typeof undefined union unless unsafe unsigned until use using var virtual void volatile where " +
    "while with xor yield",
);
const SQL_KEYWORDS = words(
  "all alter and as asc between by case create delete desc distinct drop else end exists false foreign from full " +
    "group having in index inner insert into is join key left like limit not null on or order outer primary right " +
    "select set table then true union unique update values view when where with",
);

const SLASHES = String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`;
const HASH = String.raw`(?<![\w$&])#[^\n]*`;
const DASHES = String.raw`--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`;
const MARKUP = String.raw`<!--[\s\S]*?(?:-->|$)`;
const NO_COMMENT = "(?!)";
// Languages by how their comments look; others have // and /* */.
const COMMENTS = [
  [
    HASH,
    words(
      "bash cmake console dockerfile elixir ini julia make makefile nim perl ps1 powershell py python r rb ruby sh " +
        "shell toml yaml yml zsh",
    ),
  ],
  [DASHES, words("ada elm haskell hs lua sql")],
  [MARKUP, words("html svg vue xml")],
  [NO_COMMENT, words("json")],
];
const UNCOLOURED = words("csv log markdown md output plain plaintext text txt").add("");

const STRINGS =
  String.raw`"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'|` +
  "`(?:[^`\\\\]|\\\\[\\s\\S])*\\\\?(?:`|$)";
const NUMBERS = String.raw`\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)[a-zA-Z%]*`;
const WORDS = String.raw`[\p{L}_$][\p{L}\p{N}_$]*`;

// The pattern of a language's parts, in groups: comment, string, number, word.
function partsOf(language) {
  const known = COMMENTS.find(([, languages]) => languages.has(language));
  return new RegExp(`(${known ? known[0] : SLASHES})|(${STRINGS})|(${NUMBERS})|(${WORDS})`, "gu");
}

function kindOf([, comment, string, number, word], next, language) {
  if (comment) return "comment";
  if (string) return language === "json" && next === ":" ? "name" : "string";
  if (number) return "number";
  if (language === "sql" ? SQL_KEYWORDS.has(word.toLowerCase()) : KEYWORDS.has(word)) return "keyword";
  return next === "(" ? "name" : null;
}

function colourDiff(text) {
  return text.split(/(?<=\n)/).map((line) => {
    const kind = { "+": "added", "-": "removed", "@": "comment" }[line[0]];
    return kind ? el("span", { class: kind }, line) : line;
  });
}

// Lines of a block that the browser lays out as one.
const CHUNK_LINES = 200;

// A code block whose text may grow. Parts that end before the last line stay as
// they are; those of the last line are coloured again when more arrives. Long code
// is cut into chunks, so that the browser lays out only what is in sight.
class CodeView {
  constructor(language) {
    this.language = language;
    this.pattern = partsOf(language);
    this.text = "";
    this.done = 0; // Characters that are shown for good.
    this.tail = [];
    this.code = el("code");
    this.beginChunk();
    const copy = copyButton("Copy code", () => this.text);
    const name = language || "text";
    const head = el("div", { class: "code-head" }, el("span", {}, name), copy);
    const text = el("pre", { tabindex: "0", role: "group", "aria-label": `Code, ${name}` }, this.code);
    this.element = el("div", { class: "code" }, head, text);
  }

  update(text, finished) {
    for (const node of this.tail) node.remove();
    this.tail = [];
    this.text = text;
    // Before this, parts are final. The last line break is not: it is no part of the
    // text if the fence comes next.
    const safe = finished ? text.length : Math.max(0, text.lastIndexOf("\n"));
    if (UNCOLOURED.has(this.language)) this.plain(safe);
    else if (this.language === "diff") this.keep(colourDiff(text.slice(this.done, safe)), safe);
    else this.colour(safe);
    this.tail = [document.createTextNode(text.slice(this.done))];
    this.chunk.append(...this.tail);
  }

  beginChunk() {
    this.chunk = el("span", { class: "chunk" });
    this.lines = 0;
    this.code.append(this.chunk);
  }

  // Shows what will not change: coloured parts, and text between them.
  keep(nodes, end) {
    for (let node of nodes) {
      while (typeof node === "string" && node.includes("\n")) {
        const next = node.indexOf("\n") + 1;
        this.chunk.append(node.slice(0, next));
        node = node.slice(next);
        if (++this.lines >= CHUNK_LINES) this.beginChunk();
      }
      if (node) this.chunk.append(node);
    }
    this.done = Math.max(this.done, end);
  }

  plain(safe) {
    this.keep([this.text.slice(this.done, safe)], safe);
  }

  colour(safe) {
    const nodes = [];
    let at = this.done;
    this.pattern.lastIndex = at;
    for (let match = this.pattern.exec(this.text); match; match = this.pattern.exec(this.text)) {
      const end = match.index + match[0].length;
      if (end > safe) {
        // What may still grow is not final, but what stands before it is.
        safe = Math.min(safe, match.index);
        break;
      }
      const kind = kindOf(match, this.text[end], this.language);
      if (!kind) continue;
      nodes.push(this.text.slice(at, match.index), el("span", { class: kind }, match[0]));
      at = end;
    }
    this.keep([...nodes, this.text.slice(at, safe)], safe);
  }
}
