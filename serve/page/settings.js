// The settings of a chat: the system prompt and how tokens are sampled. A field
// that is empty is left to the server.

const SAMPLING = Object.entries({
  temperature: "Temperature", top_p: "Top-p", top_k: "Top-k", min_p: "Min-p", max_tokens: "Longest answer", seed: "Seed",
}).map(([name, label]) => ({ name, label, ...OPTIONS[name] }));

// Settings as far as they are of the right kind; what else an object has is dropped.
function checkedSettings(given) {
  const settings = {};
  for (const { name, min = -Infinity, above = -Infinity, max = Infinity } of SAMPLING) {
    const value = given[name];
    if (Number.isFinite(value) && value >= min && value > above && value <= max) settings[name] = value;
  }
  if (typeof given.system === "string" && given.system) settings.system = given.system;
  const stop = [given.stop].flat().filter((text) => typeof text === "string" && text);
  if (stop.length) settings.stop = stop;
  return settings;
}

// A line break within a stop string is written \n.
function stopToText(stop = []) {
  return stop.map((text) => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\t", "\\t")).join("\n");
}

function stopFromText(text) {
  const unescape = (line) => line.replace(/\\([\\nt])/g, (_, c) => ({ n: "\n", t: "\t", "\\": "\\" })[c]);
  return text.split("\n").filter((line) => line).map(unescape);
}

// The body of a request for the answer to `messages`.
function requestBody(chat, model) {
  const { system, ...sampling } = checkedSettings(chat.settings);
  const messages = conversation(chat.messages);
  if (system) messages.unshift({ role: "system", content: system });
  return { model, messages, ...sampling };
}

// Messages as a server gets them: without thoughts, answers that failed, and questions
// that were refused, such as one that is too long. The questions before and after an
// answer that failed become one, since many templates want the roles to alternate.
function conversation(messages) {
  const result = [];
  const isRefused = (i) => messages[i + 1]?.error?.status === 400;
  for (const { role, content } of messages.filter((_, i) => !isRefused(i))) {
    const text = role === "assistant" ? separateThought(content).answer.trim() : content;
    if (text && result.at(-1)?.role === role) result.at(-1).content += `\n\n${text}`;
    else if (text) result.push({ role, content: text });
  }
  return result;
}

// An answer's thought and the rest. A template may open the thought in the prompt, so
// that the answer has only its end.
function separateThought(text) {
  const begin = /^\s*<think>\n?/.exec(text);
  const end = text.indexOf("</think>");
  if (!begin && end < 0) return { thought: "", answer: text, open: false };
  const from = begin ? begin[0].length : 0;
  if (end < 0) return { thought: text.slice(from), answer: "", open: true };
  return { thought: text.slice(from, end).trim(), answer: text.slice(end + 8).trimStart(), open: false };
}

// The dialog that changes the settings of `chat`; `changed` is called after each change.
function openSettings(chat, changed) {
  const dialog = byId("settings");
  const { settings } = chat;
  const set = (name, value) => {
    if (value === undefined) delete settings[name];
    else settings[name] = value;
    changed();
  };
  const field = ({ name, label, hint, above, ...limits }) => {
    const id = `setting-${name}`;
    const change = () => {
      const value = input.value === "" ? undefined : Number(input.value);
      input.setCustomValidity(value <= above ? `Please enter a number above ${above}.` : "");
      if (input.checkValidity()) set(name, value);
    };
    const input = el("input", {
      id, type: "number", ...limits, placeholder: "default", "aria-describedby": `${id}-hint`, input: change,
    });
    input.value = settings[name] ?? "";
    return el("div", { class: "field" }, el("label", { for: id }, label), input, el("small", { id: `${id}-hint` }, hint));
  };
  const system = el("textarea", { id: "setting-system", rows: "4", placeholder: "default" });
  system.value = settings.system || "";
  system.addEventListener("input", () => set("system", system.value || undefined));
  const stop = el("textarea", { id: "setting-stop", rows: "2", spellcheck: "false", "aria-describedby": "stop-hint" });
  stop.value = stopToText(settings.stop);
  stop.addEventListener("input", () => set("stop", stop.value ? stopFromText(stop.value) : undefined));
  const stopHint = "One a line; \\n for a line break. The answer ends before any of them.";
  byId("settings-fields").replaceChildren(
    el("div", { class: "field" }, el("label", { for: "setting-system" }, "System prompt"), system),
    el("div", { class: "fields" }, ...SAMPLING.map(field)),
    el("div", { class: "field" }, el("label", { for: "setting-stop" }, "Stop strings"), stop, el("small", { id: "stop-hint" }, stopHint)),
  );
  dialog.showModal();
}

// The fields of the key, which belong to the window and not to a chat.
function startKeyFields(changed) {
  const input = byId("key");
  const remember = byId("key-remember");
  input.value = key.get();
  remember.checked = key.isRemembered();
  const set = () => {
    key.set(input.value.trim(), remember.checked);
    changed();
  };
  input.addEventListener("change", set);
  remember.addEventListener("change", set);
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    closeDialog(byId("settings"));
  });
}
