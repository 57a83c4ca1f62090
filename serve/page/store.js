// The browser keeps chats in IndexedDB, settings in its storage of strings.
// Where it keeps nothing, as in some private windows, the page works without.

// A string that is kept, or null; `area` is localStorage or sessionStorage.
function kept(name, area = "localStorage") {
  try {
    return window[area].getItem(`llamac-${name}`);
  } catch {
    return null;
  }
}

// Keeps a string; null removes it.
function keep(name, value, area = "localStorage") {
  try {
    if (value === null) window[area].removeItem(`llamac-${name}`);
    else window[area].setItem(`llamac-${name}`, value);
  } catch {
    // Not kept: it holds for this visit.
  }
}

// A stored object, or {} if it is missing.
function keptObject(name) {
  try {
    return Object(JSON.parse(kept(name)));
  } catch {
    return {};
  }
}

function finished(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// Chats: {id, title, updated, settings, messages}. Their heads, which are all but the
// messages, have a store of their own, so that the list is read without the texts.
class Store {
  static async open() {
    const store = new Store();
    try {
      const request = indexedDB.open("llamac", 1);
      request.onupgradeneeded = () => {
        request.result.createObjectStore("heads", { keyPath: "id" });
        request.result.createObjectStore("messages");
      };
      store.database = await finished(request);
    } catch {
      store.database = null;
      store.memory = new Map();
    }
    return store;
  }

  stores(mode) {
    const transaction = this.database.transaction(["heads", "messages"], mode);
    return [transaction.objectStore("heads"), transaction.objectStore("messages")];
  }

  // The chats without their messages, the one used last first.
  async heads() {
    const all = this.database ? await finished(this.stores("readonly")[0].getAll()) : [...this.memory.values()];
    return all.sort((a, b) => b.updated - a.updated);
  }

  // The chat `id`, or null.
  async load(id) {
    if (!this.database) return this.memory.get(id) || null;
    const [heads, messages] = this.stores("readonly");
    const [head, list] = await Promise.all([finished(heads.get(id)), finished(messages.get(id))]);
    return head && list ? { ...head, messages: list } : null;
  }

  async save(chat) {
    if (!this.database) return this.memory.set(chat.id, chat);
    const { messages: list, ...head } = chat;
    const [heads, messages] = this.stores("readwrite");
    return Promise.all([finished(heads.put(head)), finished(messages.put(list, chat.id))]);
  }

  async remove(id) {
    if (!this.database) return this.memory.delete(id);
    return Promise.all(this.stores("readwrite").map((store) => finished(store.delete(id))));
  }
}
