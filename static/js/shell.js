// What every page can do beyond its HTML: theme without a round trip, menus that close, confirmations, copying,
// the palette, keys. Every page works without this file. It keeps no state but the theme's cookie.

const root = document.documentElement;
root.classList.add("js");

const typing = (at) => at.closest?.("input, textarea, select, [contenteditable]:not([contenteditable=false]), .cm-editor, dialog[open]");
const say = (words) => { document.getElementById("said").textContent = words; };
const told = document.querySelector(".messages"); // readers announce what comes into a status, and not what a page begins with
if (told) setTimeout(() => told.append(...told.childNodes));

for (const hidden of document.querySelectorAll("[data-open][hidden], [data-copy][hidden]")) hidden.hidden = false;

const tab = document.querySelector(".tabs [aria-current]"); // sideways alone: the page opens at its top
if (tab) tab.closest(".tabs").scrollLeft += Math.max(tab.getBoundingClientRect().right - tab.closest(".tabs").getBoundingClientRect().right, 0);

// ---- theme

for (const form of document.querySelectorAll("form.theme")) {
  form.addEventListener("submit", (event) => {
    const theme = event.submitter?.value;
    if (!theme) return;
    event.preventDefault();
    root.dataset.theme = theme;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `spak_theme=${theme}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.value === theme));
    document.dispatchEvent(new CustomEvent("spak:theme", { detail: theme }));
    say(`Theme: ${theme}`);
  });
}

// ---- menus, forms, copying

const closeMenus = (but) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (menu !== but) menu.open = false;
};
document.addEventListener("click", (event) => {
  closeMenus(event.target.closest("details.menu"));
  const copy = event.target.closest("[data-copy]");
  if (copy) navigator.clipboard?.writeText(copy.dataset.copy).then(() => say("Copied"), () => say("Copying is not allowed here"));
  const inMenu = document.getElementById(event.target.closest("main a[href^='#']")?.hash.slice(1) ?? "");
  const menu = inMenu?.closest("details.menu");
  if (menu) { event.preventDefault(); menu.open = true; inMenu.focus(); }
  const open = event.target.closest("[data-open]");
  if (open) show(open.dataset.open);
  const back = event.target.closest("[data-back]"); // what was typed is still in the form
  if (back && history.length > 1 && !event.ctrlKey && !event.metaKey) { event.preventDefault(); history.back(); }
});
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-submit-on-change]");
  if (form && event.target.matches("select, [type=checkbox]")) form.requestSubmit();
});
document.addEventListener("formdata", (event) => {  // an address says only what is asked for
  if (event.target.method !== "get") return;
  for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
});

let asked = null;
function ask(form, submitter, words) {
  if (!asked) {
    asked = document.createElement("dialog");
    asked.className = "dialog";
    asked.innerHTML = '<form method="dialog"><p></p><div class="actions"><button class="button" value="">Back</button><button class="button primary" value="yes"></button></div></form>';
    document.body.append(asked);
  }
  asked.querySelector("p").textContent = words;
  asked.querySelector("[value=yes]").textContent = form.dataset.confirmDo ?? submitter?.textContent.trim() ?? "Continue";
  asked.setAttribute("aria-label", words);
  asked.returnValue = "";
  asked.onclose = () => {
    if (asked.returnValue !== "yes") return;
    form.dataset.confirmed = "1";
    form.requestSubmit(submitter);
  };
  asked.showModal();
}
document.addEventListener("submit", (event) => {
  const form = event.target;
  const words = event.submitter?.dataset.confirm ?? form.dataset.confirm;
  if (!words || form.dataset.confirmed) return;
  event.preventDefault();
  ask(form, event.submitter, words);
});

// A page that comes of a form keeps the place of whoever works by keys: where it leads, else its report, else the form.
const LEFT = "spak:left";
document.addEventListener("submit", ({ target, defaultPrevented }) => {
  if (defaultPrevented || target.method !== "post") return;
  const near = target.closest("main section[aria-labelledby], main [id]");
  sessionStorage.setItem(LEFT, JSON.stringify([location.pathname, near?.getAttribute("aria-labelledby") ?? near?.id ?? ""]));
});
const [leftPath, leftPlace] = JSON.parse(sessionStorage.getItem(LEFT) ?? "[]");
sessionStorage.removeItem(LEFT);
if (leftPath) setTimeout(() => {  // after the report was moved, which would take the focus from it
  const place = location.hash.slice(1) || (told?.firstElementChild || leftPath !== location.pathname ? "" : leftPlace);
  const landing = document.getElementById(place) ?? told?.firstElementChild;
  if (!landing || document.activeElement !== document.body) return;
  if (landing.tabIndex < 0) landing.tabIndex = -1;
  landing.focus();
});

// ---- the palette

const palette = document.getElementById("palette");
let places = null, coming = null, chosen = 0, shown = [];

async function show(name) {
  const dialog = document.getElementById(name);
  if (!dialog || dialog.open) return;
  closeMenus();
  dialog.showModal();
  if (dialog !== palette) return;
  const box = palette.querySelector("input");
  box.value = "";
  draw("");
  if (places) return;
  coming ??= fetchPlaces(box.dataset.source);
  await coming;
  coming = null;
  draw(box.value);  // somebody may have typed meanwhile
}

async function fetchPlaces(source) {
  try {
    const answer = await fetch(source, { headers: { Accept: "application/json" } });
    if (answer.ok) places = (await answer.json()).places;
  } catch { /* asked again when the palette is opened again */ }
}

// A place fits when the letters typed stand in its name in order; letters side by side and at the start weigh more.
function fit(name, wanted) {
  let at = -1, score = 0;
  for (const letter of wanted) {
    const next = name.indexOf(letter, at + 1);
    if (next < 0) return -1;
    score += next === at + 1 ? 3 : 1;
    if (next === 0) score += 3;
    at = next;
  }
  return score - name.length / 100;
}

// Runs that the palette does not hold are asked for when nothing that it holds fits.
const FOUND_MS = 250;
const asking = { words: "", found: [], timer: 0 };

async function find(words) {
  asking.words = words;
  asking.found = [];
  const source = palette.querySelector("input").dataset.source;
  try {
    const answer = await fetch(`${source}${source.includes("?") ? "&" : "?"}q=${encodeURIComponent(words)}`, { headers: { Accept: "application/json" } });
    if (answer.ok && asking.words === words) asking.found = (await answer.json()).places;
  } catch { /* said as nothing found: the next letter asks again */ }
  if (asking.words === words && palette.querySelector("input").value.trim() === words) draw(words);
}

function draw(typed) {
  const wanted = typed.toLowerCase().replace(/\s+/g, ""), words = typed.trim(), known = asking.words === words;
  shown = [...(places ?? []), ...(known ? asking.found : [])].map((place) => [fit(place.name.toLowerCase(), wanted), place]).filter(([score]) => score >= 0 || !wanted)
    .sort((one, other) => (wanted ? other[0] - one[0] : 0)).slice(0, 30).map(([, place]) => place);
  chosen = 0;
  clearTimeout(asking.timer);
  if (places && wanted && !shown.length && !known) asking.timer = setTimeout(() => find(words), FOUND_MS);
  const nothing = palette.querySelector("[data-nothing]");
  nothing.hidden = !places || !wanted || shown.length > 0;
  nothing.textContent = nothing.hidden ? "" : known ? `Nothing found for ${words}.` : "Looking for runs...";
  const list = palette.querySelector("ul");
  list.replaceChildren(...shown.map((place, index) => {
    const row = document.createElement("li");
    row.id = `place-${index}`;
    row.setAttribute("role", "option");
    const kind = document.createElement("span");
    kind.textContent = place.kind;
    row.append(place.name, kind);
    row.addEventListener("click", () => location.assign(place.url));
    return row;
  }));
  mark();
}

function mark() {
  const rows = palette.querySelectorAll("li");
  rows.forEach((row, index) => row.setAttribute("aria-selected", String(index === chosen)));
  rows[chosen]?.scrollIntoView({ block: "nearest" });
  const box = palette.querySelector("input");
  if (rows[chosen]) box.setAttribute("aria-activedescendant", rows[chosen].id);
  else box.removeAttribute("aria-activedescendant");
}

if (palette) {
  const box = palette.querySelector("input");
  box.addEventListener("input", () => draw(box.value));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length) {
      event.preventDefault();
      chosen = (chosen + step + shown.length) % shown.length;
      mark();
    } else if (event.key === "Enter" && shown[chosen]) {
      event.preventDefault();
      location.assign(shown[chosen].url);
    }
  });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
}

// ---- keys

let before = "";
document.addEventListener("keydown", (event) => {
  if (event.key === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && palette) {
    event.preventDefault();
    show("palette");
    return;
  }
  if (event.key === "Escape") closeMenus();
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || root.dataset.keys === "off") return;
  const two = before + event.key;
  before = event.key === "g" ? "g" : "";
  const place = two.length === 2 && [...document.querySelectorAll(".nav [data-go]")].find((one) => two === `g${one.dataset.go}`);
  if (place) place.click();
  else if (event.key === "?") show("keys");
  else if (event.key === "/") {
    const filter = document.querySelector("[data-filter]");
    if (filter) { event.preventDefault(); filter.focus(); filter.select(); }
  }
});
