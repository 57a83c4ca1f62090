// The list of chats, and chats as files.

// Reads the list anew, and shows the chats whose titles have the words searched for.
async function updateList() {
  app.heads = await app.store.heads();
  const list = byId("chats");
  if (list.querySelector("input")) return; // A title is being written; the list follows then.
  const words = byId("search").value.toLowerCase().split(/\s+/);
  const found = app.heads.filter((head) => words.every((word) => chatTitle(head).toLowerCase().includes(word)));
  const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  list.replaceChildren(...found.map(chatEntry));
  if (focused) list.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  byId("export").disabled = app.heads.length === 0;
  markCurrentChat();
}

// Updates the list after a change that other windows of this server should see.
async function listChanged() {
  app.channel?.postMessage("changed");
  await updateList();
}

function chatEntry(head) {
  const title = chatTitle(head);
  const entry = el("li", { "data-id": head.id });
  const open = el("button", { type: "button", class: "open", title, "aria-label": title }, title);
  open.addEventListener("click", () => openChat(head.id));
  entry.append(
    open,
    el(
      "span",
      { class: "actions" },
      iconButton("pencil", `Rename ${title}`, () => renameChat(entry, head)),
      iconButton("save", `Export ${title}`, () => exportChats([head.id], title)),
      iconButton("bin", `Delete ${title}`, () => deleteChat(head.id)),
    ),
  );
  return entry;
}

function markCurrentChat() {
  for (const entry of byId("chats").children) {
    const current = entry.dataset.id === app.chat?.id;
    entry.querySelector(".open")?.[current ? "setAttribute" : "removeAttribute"]("aria-current", "true");
  }
}

// The chat `id`: the one in memory where an answer is being made for it.
async function findChat(id) {
  if (app.chat?.id === id) return app.chat;
  return app.runs.get(id)?.chat || (await app.store.load(id));
}

async function openChat(id) {
  const chat = await findChat(id);
  if (!chat) return;
  showChat(chat);
  showTab("chat");
  closeDrawer();
  byId("prompt").focus();
}

function beginChat() {
  showChat(newChat());
  showTab("chat");
  closeDrawer();
  byId("prompt").focus();
}

function renameChat(entry, head) {
  const field = el("input", { "aria-label": "Title", maxlength: "200" });
  let done = false;
  const finish = async (save) => {
    if (done) return;
    done = true;
    field.remove();
    const title = field.value.trim();
    const chat = save && title ? await findChat(head.id) : null;
    if (chat) {
      chat.title = title;
      await saveChat(chat, false);
      if (app.chat === chat) updateChat();
    }
    await listChanged();
    byId("chats").querySelector(`[data-id="${CSS.escape(head.id)}"] .open`)?.focus();
  };
  field.value = chatTitle(head);
  field.addEventListener("blur", () => finish(true));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) finish(true);
    else if (event.key === "Escape") finish(false);
    else return;
    event.stopPropagation();
  });
  entry.replaceChildren(field);
  field.focus();
  field.select();
}

async function deleteChat(id) {
  const chat = await findChat(id);
  if (!chat) return;
  chat.deleted = true; // An answer that ends now is not saved.
  app.runs.get(id)?.controller.abort();
  await app.store.remove(id);
  if (app.chat.id === id) showChat(newChat());
  await listChanged();
  offerUndo("Chat deleted", async () => {
    delete chat.deleted;
    await saveChat(chat, false);
    await listChanged();
    openChat(id);
  });
}

// --- Files -----------------------------------------------------------------------

// A chat as the body of a request, which servers of OpenAI's interface take.
function chatToJson(chat) {
  const { system, ...sampling } = checkedSettings(chat.settings);
  const messages = chat.messages.filter(({ content }) => content).map(({ role, content }) => ({ role, content }));
  if (system) messages.unshift({ role: "system", content: system });
  return { messages, ...sampling, metadata: { title: chatTitle(chat) } };
}

// The text of a message, whose content may come in parts.
function contentText(content) {
  if (typeof content === "string") return content;
  const isText = (part) => part?.type === "text" && typeof part.text === "string";
  if (!Array.isArray(content) || !content.every(isText)) throw new Error("a message holds something other than text");
  return content.map((part) => part.text).join("");
}

// A new chat of what chatToJson() gives, or of a list of messages. Throws an Error
// that says what is wrong.
function chatFromJson(json) {
  const messages = (Array.isArray(json) ? json : json?.messages) || null;
  if (!Array.isArray(messages) || !messages.length) throw new Error("it has no messages");
  const chat = { ...newChat(), settings: checkedSettings(Object(json)) };
  const system = [];
  for (const message of messages) {
    const content = contentText(message?.content);
    if (["system", "developer"].includes(message.role)) system.push(content);
    else if (["user", "assistant"].includes(message.role)) chat.messages.push({ role: message.role, content });
    else throw new Error(`a message has the role ${JSON.stringify(message.role)}`);
  }
  if (system.length) chat.settings.system = system.join("\n\n");
  const title = json.metadata?.title ?? json.title;
  if (typeof title === "string") chat.title = title.trim().slice(0, 200);
  chat.title ||= titleOf(chat.messages[0]?.content || "");
  return chat;
}

// The chats in the text of a file: one, a list of them, or one a line.
function chatsFromText(text) {
  let json;
  try {
    json = JSON.parse(text);
  } catch {
    json = text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
  }
  const isList = Array.isArray(json) && !(json[0] && "role" in Object(json[0]));
  return (isList ? json : [json]).map(chatFromJson);
}

async function importChats(files) {
  let last = null;
  try {
    for (const file of files)
      for (const chat of chatsFromText(await file.text())) {
        await saveChat(chat, false);
        last = chat;
      }
    showBanner(null);
  } catch (error) {
    const expected = 'Expected chats as JSON: {"messages": [{"role", "content"}, ...]}.';
    showBanner(`This file cannot be imported: ${error.message}. ${expected}`);
  }
  await listChanged();
  if (last) openChat(last.id);
}

async function exportChats(ids, name) {
  const chats = [];
  for (const id of ids) {
    const chat = await findChat(id);
    if (chat) chats.push(chatToJson(chat));
  }
  const json = JSON.stringify(chats.length === 1 ? chats[0] : chats, null, 1);
  const address = URL.createObjectURL(new Blob([json], { type: "application/json" }));
  const file = `${name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "chat"}.json`;
  el("a", { href: address, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function startList() {
  byId("new-chat").addEventListener("click", beginChat);
  byId("search").addEventListener("input", updateList);
  byId("import").addEventListener("click", () => byId("import-file").click());
  byId("import-file").addEventListener("change", async (event) => {
    await importChats(event.target.files);
    event.target.value = "";
  });
  byId("export").addEventListener("click", () => exportChats(app.heads.map((head) => head.id), "chats"));
  startChannel();
}

// Other windows of this server show the same chats.
function startChannel() {
  if (!window.BroadcastChannel) return;
  const channel = new BroadcastChannel("llamac");
  channel.addEventListener("message", async () => {
    await updateList();
    const head = app.heads.find(({ id }) => id === app.chat.id);
    if (head?.updated > app.chat.updated && !app.runs.has(head.id)) showChat(await app.store.load(head.id));
  });
  app.channel = channel;
}
