// The chat that is shown: sending, stopping, answering again, going on from an
// earlier message.

const app = {
  store: null,
  chat: null, // The chat that is shown.
  models: [],
  runs: new Map(), // Answers that are being made, by chat.
  views: new Map(), // Views of the shown chat, by message.
  following: true, // Whether the end of the conversation is kept in sight.
};

function newChat() {
  // Pages that came without encryption from another machine have no randomUUID().
  const id = crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`;
  return { id, title: "", updated: Date.now(), settings: checkedSettings(keptObject("settings")), messages: [] };
}

function chatTitle(chat) {
  return chat.title || "New chat";
}

// The model that is chosen, as /v1/models has it, or undefined.
function currentModel() {
  return app.models.find((model) => model.id === byId("model").value);
}

function showChat(chat) {
  app.chat = chat;
  app.views.clear();
  keep("chat", chat.id, "sessionStorage");
  byId("messages").replaceChildren(...chat.messages.map((message) => addView(chat, message)));
  updateChat();
  showEnd();
}

function addView(chat, message) {
  const view = new MessageView(chat, message);
  app.views.set(message, view);
  return view.element;
}

// Shows what depends on the chat as a whole.
function updateChat() {
  const { chat } = app;
  const running = app.runs.has(chat.id);
  byId("empty").hidden = chat.messages.length > 0;
  byId("title").textContent = chatTitle(chat);
  document.title = `${chatTitle(chat)} \u2013 llamac`;
  const send = byId("send");
  const label = running ? "Stop" : "Send";
  send.replaceChildren(icon(running ? "stop" : "send"));
  send.setAttribute("aria-label", label);
  send.title = label;
  updateContext();
  markCurrentChat();
}

// How much of the context the last answer and all before it take.
function updateContext() {
  const total = app.chat.messages.findLast((message) => message.stats?.total)?.stats.total;
  const most = currentModel()?.max_model_len;
  byId("context").hidden = !total;
  if (!total) return;
  const meter = byId("context-meter");
  byId("context-text").textContent = most ? `${whole(total)} of ${whole(most)} tokens` : count(total, "token");
  meter.hidden = !most;
  meter.setAttribute("aria-valuenow", total);
  meter.setAttribute("aria-valuemax", most || total);
  meter.classList.toggle("full", total > 0.9 * most);
  meter.firstElementChild.style.width = `${Math.min(100, (100 * total) / (most || total))}%`;
}

// Keeps a chat; one that changed comes first in the list.
async function saveChat(chat, isChange = true) {
  if (chat.deleted) return;
  if (isChange) chat.updated = Date.now();
  try {
    await app.store.save(chat);
  } catch (error) {
    showBanner(`The browser could not keep this chat: ${error.message}`);
  }
  if (isChange) await listChanged();
}

// Sends what was written.
function send() {
  const field = byId("prompt");
  const text = field.value.trim();
  if (!text || app.runs.has(app.chat.id)) return;
  field.value = "";
  fitHeight(field);
  ask(text);
}

function ask(text) {
  const { chat } = app;
  const message = { role: "user", content: text };
  chat.messages.push(message);
  if (!chat.title) chat.title = titleOf(text);
  byId("messages").append(addView(chat, message));
  answer(chat);
}

// The first words of a message.
function titleOf(text) {
  const [line] = text.split("\n");
  return line.length > 60 ? `${line.slice(0, 59).trimEnd()}\u2026` : line;
}

function stop() {
  app.runs.get(app.chat.id)?.controller.abort();
}

// Goes back to the first `length` messages, and offers to undo that.
function cutChat(length, what) {
  const { chat } = app;
  const before = chat.messages;
  const lost = before.slice(length).some((message) => message.content);
  chat.messages = before.slice(0, length);
  if (!lost) return;
  offerUndo(what, async () => {
    app.runs.get(chat.id)?.controller.abort();
    chat.messages = before;
    if (app.chat.id === chat.id) showChat(chat);
    await saveChat(chat);
  });
}

// Answers the last question once more.
function regenerate() {
  const { chat } = app;
  if (app.runs.has(chat.id) || !chat.messages.length) return;
  const last = chat.messages.findLastIndex((message) => message.role === "user");
  if (last < 0) return;
  cutChat(last + 1, "Answering again");
  showChat(chat);
  answer(chat);
}

// Puts `text` in the place of a message, and goes on from there.
function editMessage(message, text) {
  const { chat } = app;
  cutChat(chat.messages.indexOf(message), "Message changed");
  showChat(chat);
  ask(text);
}

// Has the server answer the last message of `chat`, shown or not.
async function answer(chat) {
  const body = requestBody(chat, byId("model").value);
  const message = { role: "assistant", content: "", state: "partial" };
  const run = { message, controller: new AbortController(), begin: performance.now(), thinking: false };
  const view = () => app.views.get(message);
  chat.messages.push(message);
  app.runs.set(chat.id, run);
  if (app.chat === chat) {
    // The answer before is not the last one any more.
    for (const other of app.views.values()) other.showFoot();
    byId("messages").append(addView(chat, message));
    showEnd();
    updateChat();
  }
  say("Answering");
  saveChat(chat);
  const saver = setInterval(() => saveChat(chat, false), 2000);
  try {
    const options = { stream: true, stream_options: { include_usage: true, continuous_usage_stats: true } };
    for await (const part of streamCompletion({ ...body, ...options }, run.controller.signal)) {
      receive(run, part);
      view()?.changed();
    }
    delete message.state;
  } catch (error) {
    if (error.name === "AbortError") message.state = "stopped";
    else {
      delete message.state;
      message.error = { message: error.message, status: error.status, retryAfter: error.retryAfter };
    }
  }
  clearInterval(saver);
  app.runs.delete(chat.id);
  view()?.finish();
  if (app.chat === chat) updateChat();
  if (message.error) say(message.error.message);
  else if (message.state) say("Stopped");
  else say(`Answer complete. ${separateThought(message.content).answer.slice(0, 1000)}`);
  await saveChat(chat);
}

// Adds a part of the stream to the answer.
function receive(run, { choices: [choice] = [], usage }) {
  const { message } = run;
  const delta = choice?.delta || {};
  const now = performance.now();
  if (delta.reasoning_content) {
    message.content += (run.thinking ? "" : "<think>\n") + delta.reasoning_content;
    run.thinking = true;
  }
  if (delta.content) {
    message.content += (run.thinking ? "\n</think>\n" : "") + delta.content;
    run.thinking = false;
  }
  if (choice?.finish_reason) message.finish = choice.finish_reason;
  const completion = usage?.completion_tokens;
  if (delta.content || delta.reasoning_content) {
    run.first ??= { time: now, tokens: completion };
    run.last = now;
  }
  // The first part may have several tokens, and its time is that of the prompt.
  const time = (run.last - run.first?.time) / 1000;
  message.stats = {
    completion,
    first: run.first ? (run.first.time - run.begin) / 1000 : null,
    rate: time > 0 ? (completion - run.first.tokens) / time : null,
    prompt: usage?.prompt_tokens,
    cached: usage?.prompt_tokens_details?.cached_tokens,
    total: usage?.total_tokens,
  };
}

// Says what was done, with a button that undoes it.
function offerUndo(what, undo) {
  const toast = byId("toast");
  clearTimeout(offerUndo.timer);
  const hide = () => (toast.hidden = true);
  toast.replaceChildren(what, el("button", { type: "button", click: () => (hide(), undo()) }, "Undo"));
  toast.hidden = false;
  offerUndo.timer = setTimeout(hide, 15000);
}

function startComposer() {
  const field = byId("prompt");
  field.addEventListener("input", () => fitHeight(field));
  field.addEventListener("keydown", (event) => {
    if (isSend(event)) {
      event.preventDefault();
      send();
    } else if (event.key === "ArrowUp" && !field.value) {
      const last = app.chat.messages.findLast((message) => message.role === "user");
      if (last && !app.runs.has(app.chat.id)) {
        event.preventDefault();
        app.views.get(last).edit();
      }
    }
  });
  byId("send").addEventListener("click", () => {
    if (app.runs.has(app.chat.id)) stop();
    else send();
    field.focus();
  });
}
