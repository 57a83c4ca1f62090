// Icons, drawn with lines on a grid of 24.

const ICONS = {
  menu: "M4 6h16M4 12h16M4 18h16",
  plus: "M12 5v14M5 12h14",
  pencil: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  bin: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 12l5 5L19 7",
  again: "M19 12a7 7 0 1 1-2.2-5.1L19 9M19 4v5h-5",
  stop: "M7 7h10v10H7z",
  send: "M12 19V5M6 11l6-6 6 6",
  sliders: "M4 7h9M19 7h1M4 17h1M11 17h9M13 7a3 3 0 1 0 6 0a3 3 0 1 0-6 0M5 17a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
  light:
    "M8 12a4 4 0 1 0 8 0a4 4 0 1 0-8 0M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21" +
    "M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M18.4 5.6l-1.1 1.1M6.7 17.3l-1.1 1.1",
  dark: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z",
  auto: "M4 5h16v11H4zM9 20h6M12 16v4",
  save: "M12 4v11M7 11l5 5 5-5M5 20h14",
  load: "M12 16V5M7 9l5-5 5 5M5 20h14",
  help: "M9 9a3 3 0 1 1 4.2 2.8c-.8.4-1.2 1-1.2 2.2M12 17.5v.5",
  close: "M6 6l12 12M18 6L6 18",
  down: "M12 5v14M6 13l6 6 6-6",
};

function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

// A button with an icon; `label` is its name and, unless `text`, its only sign.
function iconButton(name, label, click, text = false) {
  if (text) return el("button", { type: "button", class: "labelled", click }, icon(name), label);
  return el("button", { type: "button", class: "plain", "aria-label": label, title: label, click }, icon(name));
}

// A button that copies what `text()` gives, and says so for a moment.
function copyButton(label, text) {
  const button = iconButton("copy", label, async () => {
    const done = await copyText(text());
    button.replaceChildren(icon(done ? "check" : "close"));
    say(done ? "Copied" : "The browser did not let the page copy");
    setTimeout(() => button.replaceChildren(icon("copy")), 1500);
  });
  return button;
}

// Whether the text is on the clipboard. Pages that came without encryption from
// another machine may not use the clipboard, but may copy what is selected.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { class: "hidden", "aria-hidden": "true", tabindex: "-1" });
    const before = document.activeElement;
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (before) before.focus();
    return done;
  }
}

// Has a screen reader say `text`.
function say(text) {
  byId("announcer").textContent = text;
}
