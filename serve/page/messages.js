// The messages of the chat that is shown.

const STATES = {
  length: "The answer reached its longest length or the end of the context.",
  stopped: "Stopped.",
  partial: "Cut off: the page was closed before the answer ended.",
};

function seconds(time) {
  return `${time.toFixed(time < 10 ? 2 : 1)} s`;
}

// "412 tokens · 61.2 tokens/s · ...", as far as it is known.
function statsText({ completion, rate, first, prompt, cached }) {
  return [
    completion ? count(completion, "token") : null,
    rate ? `${rate < 100 ? rate.toFixed(1) : whole(rate)} tokens/s` : null,
    first ? `first after ${seconds(first)}` : null,
    cached ? `${whole(cached)} of ${whole(prompt)} prompt tokens cached` : null,
  ].filter((part) => part).join(" \u00b7 ");
}

// A button that helps against an error: asks for the key, or tries again.
function remedy(error, again) {
  if (error.status !== 401) return iconButton("again", "Try again", again, true);
  return iconButton("sliders", "Enter the key", () => byId("open-settings").click(), true);
}

// A message as it is shown. An answer that grows is drawn at most once a frame, and
// so seldom that drawing takes a fifth of the time: a page with a long answer stays
// usable.
class MessageView {
  constructor(chat, message) {
    this.chat = chat;
    this.message = message;
    this.isAnswer = message.role === "assistant";
    this.body = el("div", { class: "body" });
    this.foot = el("div", { class: "foot" });
    const name = el("h2", { class: "hidden" }, this.isAnswer ? "Answer" : "You");
    const kind = this.isAnswer ? "answer" : "question";
    this.element = el("article", { class: `message ${kind}` }, name, this.body, this.foot);
    this.running = this.isAnswer && app.runs.get(chat.id)?.message === message;
    this.clear();
    this.draw();
    this.showFoot();
  }

  clear() {
    this.thought = null; // An answer's folded thought, with a MarkdownView.
    this.text = el("div", { class: "text" });
    this.markdown = new MarkdownView(this.text);
    this.body.replaceChildren(this.text);
  }

  // The message has more text.
  changed() {
    if (this.scheduled) return;
    this.scheduled = true;
    const wait = Math.max(0, (this.next || 0) - performance.now());
    setTimeout(() => requestAnimationFrame(() => this.drawFrame()), wait);
  }

  drawFrame() {
    const begin = performance.now();
    if (this.running) this.draw();
    this.showStats();
    // Runs after the frame has been laid out.
    setTimeout(() => {
      const end = performance.now();
      this.next = end + 4 * (end - begin);
      this.scheduled = false;
      if (this.running && this.message.content.length !== this.drawn) this.changed();
    });
  }

  // The message will not change any more.
  finish() {
    this.running = false;
    this.draw();
    this.showFoot();
  }

  draw() {
    const { content } = this.message;
    this.drawn = content.length;
    if (!this.isAnswer) this.text.textContent = content;
    else this.drawAnswer(separateThought(content));
    this.element.classList.toggle("waiting", this.running && !content);
    this.element.setAttribute("aria-busy", this.running);
    // Blocks out of sight need no layout.
    this.text.classList.toggle("long", this.text.childElementCount > 50);
  }

  drawAnswer({ thought, answer, open }) {
    // The text that looked like the answer was a thought without a beginning.
    if (thought && !this.thought && this.text.hasChildNodes()) this.clear();
    if (thought && !this.thought) {
      const summary = el("summary");
      const text = el("div", { class: "text" });
      this.thought = { summary, markdown: new MarkdownView(text), done: false };
      this.body.prepend(el("details", { class: "thought" }, summary, text));
    }
    if (thought && !this.thought.done) {
      this.thought.done = !open || !this.running;
      this.thought.summary.textContent = open && this.running ? "Thinking\u2026" : "Thought";
      this.thought.markdown.update(thought, this.thought.done);
    }
    this.markdown.update(answer, !this.running);
  }

  showStats() {
    if (this.stats) this.stats.textContent = statsText(this.message.stats || {});
  }

  showFoot() {
    const { message, chat } = this;
    this.isLast = chat.messages.at(-1) === message;
    this.stats = this.isAnswer ? el("span", { class: "stats" }) : null;
    this.showStats();
    const buttons = [];
    if (!this.running && message.content) {
      const shown = () => (this.isAnswer ? separateThought(message.content).answer : message.content);
      buttons.push(copyButton(this.isAnswer ? "Copy answer" : "Copy message", shown));
      if (!this.isAnswer) buttons.push(iconButton("pencil", "Edit message", () => this.edit()));
      else if (this.isLast) buttons.push(iconButton("again", "Answer again", regenerate));
    }
    const actions = el("div", { class: "actions" }, ...buttons);
    this.foot.replaceChildren(...[this.note(), actions, this.stats].filter((node) => node));
  }

  // The error of the answer, or the reason why it ends where it does.
  note() {
    const { error, finish, state } = this.message;
    if (this.running) return null;
    if (error) {
      const sentence = /[.!?]$/.test(error.message) ? error.message : `${error.message}.`;
      const wait = error.retryAfter ? ` Try again in ${count(error.retryAfter, "second")}.` : "";
      const help = this.isLast ? remedy(error, regenerate) : null;
      return el("p", { class: "error" }, el("span", {}, sentence + wait), help);
    }
    const text = STATES[finish === "length" ? finish : state];
    return text ? el("p", { class: "quiet note" }, text) : null;
  }

  // Puts a field in the place of the text.
  edit() {
    if (app.runs.has(this.chat.id)) return;
    const field = el("textarea", { rows: "1", "aria-label": "Message" });
    const done = (send) => {
      this.body.replaceChildren(this.text);
      this.element.classList.remove("editing");
      this.showFoot();
      if (send && field.value.trim()) editMessage(this.message, field.value.trim());
      else byId("prompt").focus();
    };
    field.value = this.message.content;
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") done(false);
      else if (isSend(event)) done(true);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    field.addEventListener("input", () => fitHeight(field));
    this.element.classList.add("editing");
    this.body.replaceChildren(field);
    const cancel = el("button", { type: "button", click: () => done(false) }, "Cancel");
    const send = el("button", { type: "button", class: "main", click: () => done(true) }, "Send");
    this.foot.replaceChildren(el("div", { class: "actions" }, cancel, send));
    fitHeight(field);
    field.focus();
  }
}

// Whether a key sends what was written: Enter, but not while a word is composed.
function isSend(event) {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing;
}

// Makes a field as high as its text.
function fitHeight(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

function scrollToEnd() {
  const scroller = byId("scroller");
  scroller.scrollTop = scroller.scrollHeight;
}

// Whether the end of the conversation is kept in sight. If so the browser may not move
// the text on its own to keep what is in sight in its place.
function follow(following) {
  app.following = following;
  byId("scroller").classList.toggle("following", following);
  byId("to-end").hidden = following;
}

function showEnd() {
  follow(true);
  scrollToEnd();
}

// Keeps the end of the conversation in sight, until the reader scrolls up and from when
// they are back. A browser lays out what is far from sight by a guess, so its height
// changes when it comes near: the end is sought again after each change of a height,
// and only a way up is the reader's.
function startScrolling() {
  const scroller = byId("scroller");
  let top = 0;
  scroller.addEventListener("scroll", () => {
    const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80;
    if (atEnd || scroller.scrollTop < top) follow(atEnd);
    top = scroller.scrollTop;
  });
  const heights = new ResizeObserver(() => {
    if (app.following) scrollToEnd();
    top = scroller.scrollTop;
  });
  heights.observe(scroller);
  heights.observe(byId("messages"));
  byId("to-end").addEventListener("click", showEnd);
}
