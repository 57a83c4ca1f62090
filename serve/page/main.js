// The page as a whole: its views, its keys, its colours, and how it begins.

const SHORTCUTS = [
  ["Enter", "Send the message"],
  ["Shift Enter", "New line"],
  ["Esc", "Stop the answer; close what is open"],
  ["\u2191", "In an empty field: edit the last message"],
  ["Alt N", "New chat"],
  ["Alt R", "Answer again"],
  ["Alt C", "Copy the last answer"],
  ["Alt L", "Show or hide the list of chats"],
  ["Alt S", "Settings"],
  ["Alt /", "These keys"],
];

// Keys are found by code, since Alt changes what a key writes on some
// keyboards.
const ALT_KEYS = {
  KeyN: beginChat,
  KeyR: regenerate,
  KeyC: copyLastAnswer,
  KeyL: toggleList,
  KeyS: () => byId("open-settings").click(),
  Slash: () => byId("help").showModal(),
};

const THEMES = { auto: "as the system", light: "light", dark: "dark" };

function isNarrow() {
  return matchMedia("(max-width: 899px)").matches;
}

// Opens or closes the list of chats: a drawer over the page where that is narrow.
function setList(open) {
  document.documentElement.dataset.list = open ? "open" : "closed";
  byId("menu").setAttribute("aria-expanded", open);
  byId("backdrop").hidden = !(open && isNarrow());
  byId("page").inert = open && isNarrow();
}

function toggleList() {
  const open = document.documentElement.dataset.list !== "open";
  setList(open);
  if (!isNarrow()) keep("list", open ? null : "closed");
  if (open) byId("new-chat").focus();
}

function closeDrawer() {
  if (isNarrow()) setList(false);
}

function showTab(name) {
  for (const tab of byId("tabs").children) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  app.server.show(name === "server");
}

function startTabs() {
  const tabs = byId("tabs");
  tabs.addEventListener("click", ({ target }) => target.id && target !== tabs && showTab(target.id.slice(4)));
  tabs.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    // There are two: both keys lead to the other one.
    const other = tabs.querySelector("[aria-selected=false]");
    other.click();
    other.focus();
  });
}

function copyLastAnswer() {
  const last = app.chat.messages.findLast((message) => message.role === "assistant" && message.content);
  if (last) app.views.get(last).foot.querySelector("button")?.click();
}

// A message above the composer; null takes it away.
function showBanner(text, ...actions) {
  const banner = byId("banner");
  banner.hidden = text === null;
  banner.replaceChildren();
  if (text !== null) banner.append(el("span", {}, text), ...actions, iconButton("close", "Dismiss", () => showBanner(null)));
}

function startTheme() {
  const button = byId("theme");
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.dataset.theme = theme;
    button.replaceChildren(icon(theme));
    button.title = `Colours: ${THEMES[theme]}`;
    button.setAttribute("aria-label", button.title);
  };
  set(kept("theme") in THEMES ? kept("theme") : "auto");
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const theme = names[(names.indexOf(button.dataset.theme) + 1) % names.length];
    set(theme);
    keep("theme", theme);
  });
}

async function loadModels() {
  const select = byId("model");
  try {
    app.models = await listModels();
    showBanner(null);
  } catch (error) {
    showBanner(error.status === 401 ? "This server asks for a key." : error.message, remedy(error, loadModels));
    return;
  }
  const before = select.value || kept("model");
  select.replaceChildren(...app.models.map(({ id }) => el("option", { value: id }, id)));
  if (app.models.some(({ id }) => id === before)) select.value = before;
  updateContext();
}

function startKeys() {
  const key = (name) => el("kbd", {}, name);
  const line = ([keys, what]) => el("div", {}, el("dt", {}, ...keys.split(" ").map(key)), el("dd", {}, what));
  byId("shortcuts").append(...SHORTCUTS.map(line));
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (isNarrow() && document.documentElement.dataset.list === "open") {
        closeDrawer();
        byId("menu").focus();
      } else stop();
    } else if (event.altKey && !event.ctrlKey && !event.metaKey && ALT_KEYS[event.code]) {
      event.preventDefault();
      ALT_KEYS[event.code]();
    }
  });
}

function startButtons() {
  const put = (id, name) => byId(id).prepend(icon(name));
  put("new-chat", "plus");
  put("import", "load");
  put("export", "save");
  put("menu", "menu");
  put("open-settings", "sliders");
  put("open-help", "help");
  put("to-end", "down");
  byId("menu").addEventListener("click", toggleList);
  byId("backdrop").addEventListener("click", closeDrawer);
  byId("open-help").addEventListener("click", () => byId("help").showModal());
  byId("open-settings").addEventListener("click", () => {
    const { chat } = app;
    openSettings(chat, () => {
      keep("settings", JSON.stringify(chat.settings));
      if (chat.messages.length) saveChat(chat, false);
    });
  });
  for (const button of document.querySelectorAll("[data-close]")) {
    button.append(icon("close"));
    button.addEventListener("click", () => closeDialog(button.closest("dialog")));
  }
  for (const dialog of document.querySelectorAll("dialog")) {
    // A click beside a dialog closes it, and so does Escape.
    dialog.addEventListener("click", (event) => event.target === dialog && closeDialog(dialog));
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      closeDialog(dialog);
    });
  }
}

async function start() {
  startTheme();
  startButtons();
  startTabs();
  startKeys();
  startScrolling();
  startComposer();
  startList();
  startKeyFields(loadModels);
  app.server = new ServerView(byId("server"));
  byId("model").addEventListener("change", () => {
    keep("model", byId("model").value);
    updateContext();
    app.server.restart();
  });
  matchMedia("(max-width: 899px)").addEventListener("change", () => setList(!isNarrow()));
  setList(!isNarrow() && kept("list") !== "closed");
  app.store = await Store.open();
  await updateList();
  const last = kept("chat", "sessionStorage");
  showChat((last && (await app.store.load(last))) || newChat());
  await loadModels();
  if (!isNarrow()) byId("prompt").focus();
}

start();
