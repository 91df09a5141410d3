// The page of a patch beyond its HTML: a list that centres the graph's node, "viewed" without a round trip,
// a comment on the line that was clicked, and keys. Every form works without it.

const all = (selector) => [...document.querySelectorAll(selector)];
const say = (words) => { document.getElementById("said").textContent = words; };
const comment = document.getElementById("comment");

// ---- the graph

const both = document.getElementById("both");
function legible() {
  const drawn = both?.querySelector("svg");
  if (!drawn) return;
  const { width, height } = drawn.viewBox.baseVal;
  if (width > both.clientWidth * 1.4 || height > 2400) both.classList.add("large"); // As it was drawn; the list leads to its nodes.
}
legible();

// A large graph is fetched once it is looked at.
let fetched = null;
function graph() {
  if (!both?.dataset.later) return Promise.resolve();
  fetched ??= fetch(both.dataset.later).then(async (answer) => {
    if (!answer.ok) return;
    const drawn = new DOMParser().parseFromString(await answer.text(), "image/svg+xml").documentElement;
    both.replaceChildren(document.importNode(drawn, true));
    legible();
  });
  return fetched;
}
if (both?.dataset.later) new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && graph()).observe(both);

async function centre(name) {
  await graph();
  const node = all("#both [data-task]").find((one) => one.dataset.task === name);
  if (!node) return;
  for (const one of all("#both [data-found]")) delete one.dataset.found;
  node.dataset.found = "true";
  const box = node.getBoundingClientRect();
  const frame = both.getBoundingClientRect();
  both.scrollBy({ left: box.x + box.width / 2 - frame.x - frame.width / 2, top: box.y + box.height / 2 - frame.y - frame.height / 2 });
  both.scrollIntoView({ block: "nearest" });
  say(`${name} is in the middle of the graph`);
}

// ---- viewed

async function viewed(form) {
  const part = form.closest("[data-part]");
  if (part.getAttribute("aria-busy")) return;
  const field = form.elements.viewed;
  const wanted = field.value;
  part.setAttribute("aria-busy", "true");
  const answer = await fetch(form.action, { method: "POST", body: new FormData(form), headers: { Accept: "application/json" } }).catch(() => null);
  part.removeAttribute("aria-busy");
  if (!answer?.ok) return form.submit();  // the page that comes says what is wrong
  field.value = wanted === "1" ? "0" : "1";
  part.open = wanted !== "1";
  form.querySelector("[data-viewed]").textContent = wanted === "1" ? "Not viewed" : "Viewed";
  const count = document.getElementById("viewed-count");
  count.textContent = Number(count.textContent) + (wanted === "1" ? 1 : -1);
  say(wanted === "1" ? "Viewed" : "Not viewed");
}
document.addEventListener("submit", (event) => {
  if (!event.target.matches(".viewed-form")) return;
  event.preventDefault();
  viewed(event.target);
});

// ---- what is folded: a link loads the next of it in its own place, and the first of that gets the focus

document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-more] a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  if (link.getAttribute("aria-busy")) return;
  link.setAttribute("aria-busy", "true");
  const answer = await fetch(link.href, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!answer?.ok) {
    location.assign(link.href);  // a page of its own, which says what is wrong
    return;
  }
  const more = new DOMParser().parseFromString(await answer.text(), "text/html").body;
  const first = more.firstElementChild;
  const focus = first?.querySelector("summary, .hunk, button") ?? first;
  if (focus && !focus.matches("summary, button, [tabindex]")) focus.tabIndex = -1;
  link.parentElement.replaceWith(...more.childNodes);
  focus?.focus();
  say("More is shown");
});

// ---- evidence of checks that end, and what others say, while the page is open

const status = document.getElementById("status");
const now = (page) => page.getElementById("judged")?.dataset ?? {};
const known = { ...now(document) };
const revision = (known.judged ?? "").split(" ")[0];
let asking = false;
async function follow() {
  const { judged, said } = now(document);
  if (asking || (judged === known.judged && said === known.said)) return;
  asking = true;
  const answer = await fetch(location.href).catch(() => null);
  asking = false;
  if (!answer?.ok) {
    setTimeout(follow, 5000);
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (judged !== known.judged && (now(page).judged ?? "").split(" ")[0] === revision) document.getElementById("found").replaceChildren(...page.getElementById("found").childNodes);
  if (said !== known.said) converse(page);
  Object.assign(known, { judged, said });
}
if (status) new MutationObserver(follow).observe(status, { subtree: true, childList: true, attributes: true });

// Threads as they are now. The forms of a thread stay while somebody types in them.
function converse(page) {
  const list = document.getElementById("threads"), before = all("#threads .thread, #threads .answer").length;
  let last = null;
  for (const card of [...page.querySelectorAll("#threads > .card")]) {
    const thread = card.querySelector(".thread"), mine = document.getElementById(thread.id);
    if (mine) renew(mine, thread);
    else if (last) last.after(card);
    else list.prepend(card);
    last = mine?.parentElement ?? card;
  }
  if (last) list.querySelector(":scope > .muted")?.remove();
  document.getElementById("open-threads").textContent = page.getElementById("open-threads").textContent;
  const more = all("#threads .thread, #threads .answer").length - before;
  if (more > 0) say(more === 1 ? "1 new comment" : `${more} new comments`);
}

function renew(mine, thread) {
  const acts = mine.querySelector(".thread-acts");
  const typed = acts && (acts.contains(document.activeElement) || [...acts.querySelectorAll("[name=text]")].some((field) => field.value));
  mine.className = thread.className;
  for (const old of [...mine.children]) if (old !== acts || !typed) old.remove();
  for (const made of [...thread.children]) {
    if (typed && made.matches(".thread-acts")) continue;
    if (typed) acts.before(made);
    else mine.append(made);
  }
}

// ---- conflicts: who types a text of their own means that one

document.addEventListener("input", (event) => {
  const own = event.target.closest(".conflict textarea")?.closest(".conflict").querySelector('[value="text"]');
  if (own) own.checked = true;
});

// ---- comments on a line or a part

function about({ line = 0, path = "" }) {
  comment.elements.line.value = line || "";
  comment.elements.path.value = path;
  comment.elements.text.focus();
}
document.addEventListener("click", (event) => {
  const found = event.target.closest("[data-centre]");
  if (found) centre(found.dataset.centre);
  if (!comment) return;
  const link = event.target.closest('.diff a[href^="?line="], [data-line], [data-about]');
  if (!link) return;
  event.preventDefault();
  const { line = link.textContent.trim(), about: path } = link.dataset;
  about(path !== undefined ? { path } : { line });
});

// The whole text is fetched when somebody opens the form that needs it.
for (const area of all("[data-lazy]")) {
  area.closest("details").addEventListener("toggle", async () => {
    if (area.value) return;
    const answer = await fetch(area.dataset.lazy);
    if (answer.ok && !area.value) area.value = await answer.text();
  }, { once: true });
}

// ---- keys

const typing = (at) => at.closest?.("input, textarea, select, dialog[open]");
let at = -1;
function go(step) {
  const parts = all("[data-part]");
  if (!parts.length) return;
  at = Math.min(parts.length - 1, Math.max(0, at + step));
  const summary = parts[at].querySelector("summary");
  summary.focus();
  summary.scrollIntoView({ block: "start" });
}
// A letter is pressed by accident more easily than a button: what acts is asked about once.
function askedFirst(key) {
  const button = document.querySelector(`[data-key="${key}"]:not([disabled])`);
  if (!button) return;
  button.dataset.confirm = button.dataset.ask;
  button.form.requestSubmit(button);
  delete button.dataset.confirm;
}
const KEYS = {
  j: () => go(1),
  k: () => go(-1),
  v: () => { const part = document.activeElement.closest?.("[data-part]:not([aria-busy])"); if (part) viewed(part.querySelector(".viewed-form")).then(() => go(1)); },
  a: () => askedFirst("a"),
  m: () => askedFirst("m"),
  x: () => document.querySelector(".verdict [name=text]")?.focus(),
  c: () => comment?.elements.text.focus(),
  i: () => document.querySelector('[data-key="i"]')?.click(),
  e: () => document.getElementById("evidence")?.scrollIntoView(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || !KEYS[event.key] || document.documentElement.dataset.keys === "off") return;
  event.preventDefault();
  KEYS[event.key]();
});
document.documentElement.dataset.review = "ready";
