// Puts the server's strings where they belong. It formats nothing and decides nothing: see view.py for what a
// section is. Everything goes in as text or as an attribute, never as markup.

import { showPoints } from "./chart.js";

const ANNOUNCE_MS = 20_000;
const RETRY_MS = 10_000;

const byName = (root, attribute, name) => root.querySelectorAll(`[${attribute}="${CSS.escape(name)}"]`);

function put(root, textAttribute, attributesAttribute, block) {
  for (const [name, text] of Object.entries(block.text ?? {})) {
    for (const element of byName(root, textAttribute, name)) {
      if (element.textContent !== text) element.textContent = text;
    }
  }
  for (const [name, attributes] of Object.entries(block.attributes ?? {})) {
    for (const element of byName(root, attributesAttribute, name)) {
      for (const [attribute, value] of Object.entries(attributes)) {
        if (value === null) element.removeAttribute(attribute);
        else if (element.getAttribute(attribute) !== value) element.setAttribute(attribute, value);
      }
    }
  }
}

// Rows keep their element as long as they keep their key: focus and selection survive an update.
function putRows(name, rows) {
  const list = document.querySelector(`[data-list="${CSS.escape(name)}"]`);
  const template = document.querySelector(`template[data-row="${CSS.escape(name)}"]`);
  const known = new Map([...list.children].map((element) => [element.dataset.key, element]));
  let place = list.firstElementChild;
  for (const row of rows) {
    let element = known.get(row.key);
    known.delete(row.key);
    if (!element) {
      element = template.content.firstElementChild.cloneNode(true);
      element.dataset.key = row.key;
      element.classList.add("new");
    }
    put(element, "data-cell", "data-cell-attributes", row);
    if (element === place) place = place.nextElementSibling;
    else list.insertBefore(element, place);
  }
  for (const element of known.values()) element.remove();
}

let summary = "";
let announced = "";

function show(sections) {
  for (const section of Object.values(sections)) {
    put(document, "data-text", "data-attributes", section);
    for (const [name, rows] of Object.entries(section.lists ?? {})) putRows(name, rows);
    if (section.points) showPoints(section.points);
    summary = section.text?.summary ?? summary;
  }
}

// One polite sentence now and then, not every number at every change.
setInterval(() => {
  if (summary && summary !== announced) {
    document.getElementById("announce").textContent = announced = summary;
  }
}, ANNOUNCE_MS);

const light = document.getElementById("live");

function tell(state, words) {
  light.dataset.live = state;
  light.textContent = words;
}

let source = null;
let retry = 0;

function listen() {
  if (source || document.hidden) return;
  clearTimeout(retry);
  tell("waiting", "Connecting");
  source = new EventSource(document.body.dataset.events);
  source.onopen = () => tell("on", "Live");
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onerror = () => {
    const refused = source.readyState === EventSource.CLOSED;
    tell("off", refused ? "Not live, trying again" : "Reconnecting");
    if (refused) {
      silence();
      retry = setTimeout(listen, RETRY_MS);
    }
  };
}

function silence() {
  source?.close();
  source = null;
}

// A page that nobody looks at gives its place to another listener.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    silence();
    tell("off", "Paused");
  } else {
    listen();
  }
});

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.activeElement?.classList.contains("why-mark")) document.activeElement.blur();
});

listen();
