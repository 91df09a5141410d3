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
  const field = form.elements.viewed;
  const wanted = field.value;
  const answer = await fetch(form.action, { method: "POST", body: new FormData(form), headers: { Accept: "application/json" } });
  if (!answer.ok) return form.submit();
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

// ---- evidence of checks that end while the page is open

const status = document.getElementById("status");
const judged = (page) => page.getElementById("judged")?.dataset.judged ?? "";
let known = judged(document);
const revision = known.split(" ")[0];
async function evidence() {
  if (judged(document) === known) return;
  known = judged(document);
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (judged(page).split(" ")[0] === revision) document.getElementById("found").replaceChildren(...page.getElementById("found").childNodes);
}
if (status) new MutationObserver(evidence).observe(status, { subtree: true, childList: true, attributes: true });

// ---- conflicts: who types a text of their own means that one

document.addEventListener("input", (event) => {
  const own = event.target.closest(".conflict textarea")?.closest(".conflict").querySelector('[value="text"]');
  if (own) own.checked = true;
});

// ---- comments on a line or a part

function about({ line = 0, path = "" }) {
  comment.elements.line.value = line;
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
const KEYS = {
  j: () => go(1),
  k: () => go(-1),
  v: () => { const part = document.activeElement.closest?.("[data-part]"); if (part) viewed(part.querySelector(".viewed-form")).then(() => go(1)); },
  a: () => document.querySelector('[data-key="a"]')?.click(),
  m: () => document.querySelector('[data-key="m"]:not([disabled])')?.click(),
  x: () => document.querySelector(".verdict [name=text]")?.focus(),
  c: () => comment?.elements.text.focus(),
  i: () => document.querySelector('[data-key="i"]')?.click(),
  e: () => document.getElementById("evidence")?.scrollIntoView(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || !KEYS[event.key]) return;
  if (document.documentElement.dataset.waiting) return;
  event.preventDefault();
  KEYS[event.key]();
});
