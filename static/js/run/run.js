// The page of a run, live: header, graph, table of tasks and records follow the stream. What the address says
// (tab, filter, record) is what is shown; a reload shows the same. Every link works without this file.

import { Graph, nodeName } from "./graph.js";
import { Log } from "./log.js";
import { follow } from "./stream.js";

const ROWS = 200, EACH_MS = 700, PANE_MS = 2500, EMPTY_MS = 150, SAY_MS = 2000, QUEUED_MS = 5000, AWAY_MS = 1500, AGAIN_MS = 500, REST = 3;
const about = document.getElementById("run").dataset;
const first = JSON.parse(document.getElementById("run-live").textContent);
const pane = document.getElementById("pane"), table = document.getElementById("run-tasks");
const WORDS = { queued: "Queued", running: "Running", waiting: "Waiting", paused: "Paused", succeeded: "Succeeded", failed: "Failed", refused: "Refused", cancelled: "Cancelled" };
const graph = new Graph(document.querySelector("#run-graph svg"));
const states = new Map();
let run = { state: document.getElementById("run-head").dataset.state, task: "" };

if (location.pathname !== about.page) history.replaceState(null, "", about.page);  // a form that was not taken
for (const [task, [state, visits]] of Object.entries(first.nodes)) graph.node(task, state, visits);
graph.taken(first.edges);

// ---- parts of the page, fetched again

async function text(address, options = {}) {
  const answer = await fetch(address, { ...options, headers: { "HX-Request": "true", ...options.headers } });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.text();
}

// At once after a pause, else that long after the last time.
function paced(work, each) {
  let timer = 0, under = false, again = false, last = -Infinity;
  const go = async () => {
    timer = 0;
    under = true;
    try { await work(); } catch { /* the next change tries again */ }
    under = false;
    last = performance.now();
    if (again) { again = false; call(); }
  };
  const call = () => { if (under) again = true; else timer ||= setTimeout(go, last + each() - performance.now()); };
  return call;
}

// What somebody typed while another answered, or the run went on: into the next question's field, or beside it.
function keep(ask, typed) {
  const field = ask.querySelector("textarea"), note = document.createElement("p");
  note.className = "message";
  note.setAttribute("role", "status");
  note.textContent = `The question changed while you typed. ${field ? "Read it again before you answer." : "What you typed is kept here."}`;
  if (field) {
    field.value = typed;
    field.form.prepend(note);
    return;
  }
  const kept = Object.assign(document.createElement("textarea"), { value: typed, readOnly: true, rows: 4, className: "mono" });
  kept.setAttribute("aria-label", "What you typed");
  const card = Object.assign(document.createElement("section"), { className: "card ask" });
  card.append(note, kept);
  ask.append(card);
}

const renew = paced(async () => {
  const fresh = new DOMParser().parseFromString(await text(about.head), "text/html");
  const head = fresh.getElementById("run-head"), ask = fresh.getElementById("run-ask");
  const figures = fresh.getElementById("run-figures");
  if (figures && !document.querySelector("#run-figures :focus")) {
    document.getElementById("run-figures").replaceWith(figures);
    again();
  }
  const here = document.getElementById("run-ask"), open = document.querySelector("#run-head details[open], dialog[open]");  // what is asked about stays
  if (head && !open) {
    const named = (one) => one.getAttribute("aria-label") ?? one.textContent.trim();
    const at = document.querySelector("#run-head :focus");
    document.getElementById("run-head").replaceWith(head);
    if (at) [...head.querySelectorAll("a, button, summary")].find((one) => named(one) === named(at))?.focus({ preventScroll: true });
  }
  const typed = here.querySelector("textarea")?.value;
  if (!ask) return;
  if (ask.dataset.asks !== here.dataset.asks) {
    here.replaceWith(ask);
    if (typed?.trim()) keep(ask, typed);
  } else if (!typed && ask.innerHTML !== here.innerHTML) here.replaceWith(ask);
}, () => EACH_MS);

const paneAgain = paced(async () => {
  if (pane.contains(document.activeElement) && document.activeElement.matches("input, select")) return;
  await load(location.href, false);
}, () => (pane.querySelector("[data-seq]") ? PANE_MS : EMPTY_MS));

const log = new Log(async (after) => text(`?tab=log&after=${after}`, { headers: { "HX-Target": "log" } }));

// Where somebody is in the pane: what is open, scrolled and in focus. Gives what finds it in the pane's next words.
function standing() {
  const named = (summary) => summary.textContent.replace(/[\d,]+/g, "");
  const open = new Set([...pane.querySelectorAll("details[open] > summary")].map(named));
  const at = pane.contains(document.activeElement) ? document.activeElement : null;
  const seq = at?.dataset.seq, summary = at?.matches("summary") ? named(at) : null;
  const { scrollLeft = 0, scrollTop = 0 } = pane.querySelector(".timeline-scroll") ?? {};
  return () => {
    for (const one of pane.querySelectorAll("details > summary")) {
      if (open.has(named(one))) one.parentElement.open = true;
      if (named(one) === summary) one.focus({ preventScroll: true });
    }
    if (seq) pane.querySelector(`.timeline-svg a[data-seq="${seq}"]`)?.focus({ preventScroll: true });
    Object.assign(pane.querySelector(".timeline-scroll") ?? {}, { scrollLeft, scrollTop });
  };
}

async function load(address, push = true) {
  const url = new URL(address, location.href);
  const html = await text(url, { headers: { "HX-Target": "pane" } });
  if (!push && url.href !== location.href) return;  // somebody chose another tab meanwhile
  if (!push && document.getElementById("log")) { putOut(); return; }  // it grows by itself, and keeps its place
  const back = push ? null : standing();
  pane.innerHTML = html;
  back?.();
  if (push) history.replaceState(null, "", url);
  const tab = url.searchParams.get("tab") ?? "timeline";
  pane.dataset.tab = tab;
  log.open(document.getElementById("log"));
  for (const link of document.querySelectorAll(".detail-side .tabs a")) {
    if (link.dataset.tab === tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

async function into(selector, address, options) {
  const place = document.querySelector(selector);
  place.innerHTML = await text(address, options);
  again();
  return place;
}

function again() {  // a check that is under way: asked for until it has ended
  const form = document.querySelector("#checked form[data-again]");
  if (form) setTimeout(() => { if (form.isConnected) form.requestSubmit(); }, AGAIN_MS);
}

pane.addEventListener("keydown", (event) => {  // Tab goes from step to step of the timeline, arrows along one
  const bar = event.target.closest(".timeline-svg a");
  const next = { ArrowLeft: bar?.previousElementSibling, ArrowRight: bar?.nextElementSibling }[event.key];
  if (!next?.matches("a")) return;
  event.preventDefault();
  next.focus();
});

document.addEventListener("click", async (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const link = event.target.closest("a[href]");
  if (!link) {
    const node = event.target.closest("#run-graph .node[role=button]");
    if (node) load(`?tab=records&task=${encodeURIComponent(node.dataset.task)}`);
    return;
  }
  if (link.dataset.into) {
    event.preventDefault();
    const place = await into(link.dataset.into, link.href);
    if (link.dataset.into !== "#record") return;
    mark(link.href);
    if (place.getBoundingClientRect().top < 60) place.scrollIntoView({ block: "start" });
    place.querySelector("#record-title")?.focus({ preventScroll: true });
    return;
  }
  const here = new URL(link.href.baseVal ?? link.href, location.href);
  if (here.pathname === location.pathname && here.search && !link.closest(".topbar")) {
    event.preventDefault();
    await load(here);
    if (here.searchParams.has("before") && pane.getBoundingClientRect().top < 0) pane.scrollIntoView({ block: "start" });
    if (here.hash) document.querySelector(here.hash)?.scrollIntoView({ block: "nearest" });
  }
});

function mark(address) {
  const seq = address.match(/\/r\/(\d+)\/$/)?.[1];
  for (const link of pane.querySelectorAll(".records a[aria-current]")) link.removeAttribute("aria-current");
  pane.querySelector(`.records li[data-seq="${seq}"] a`)?.setAttribute("aria-current", "true");
  const url = new URL(location.href);
  url.searchParams.set("tab", "records");
  url.searchParams.set("seq", seq);
  history.replaceState(null, "", url);
}

document.addEventListener("keydown", (event) => {
  const node = event.target.closest?.("#run-graph .node[role=button]");
  if (node && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  }
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.dataset.into) {
    event.preventDefault();
    const body = new FormData(form);
    await into(form.dataset.into, form.action, { method: "POST", body });
  } else if (pane.contains(form) && form.method === "get") {
    event.preventDefault();
    load(`?${new URLSearchParams([...new FormData(form)].filter(([, value]) => value))}`);
  }
});

// ---- what is said aloud, at most every two seconds

let words = "", saidAt = 0, sayLater = 0;
function say(told) {
  words = told;
  const now = performance.now();
  if (sayLater) return;
  sayLater = setTimeout(() => {
    sayLater = 0;
    saidAt = performance.now();
    document.getElementById("said").textContent = words;
  }, Math.max(0, SAY_MS - (now - saidAt)));
}

// ---- the stream

function nodes(list) {
  for (const [task, state, visits] of list) states.set(task, [state, visits]);
  redraw(list.map(([task]) => task));
}

function redraw(tasks) {
  for (const task of tasks) {
    const [state, visits] = states.get(task);
    const open = state === "running" || state === "waiting";  // while a worker is at it a question is the backend's
    const shown = !open ? state : run.state === "running" ? "running" : task === run.task ? run.state : "";
    graph.node(task, shown, visits);
    row(task, shown, visits);
  }
}

function row(task, state, visits) {
  if (!table?.closest("details").open) return;
  const line = table.querySelector(`tr[data-task="${CSS.escape(task)}"]`);
  if (!line) return;
  line.querySelector(".num").textContent = visits;
  const cell = line.querySelector(".task-state"), word = WORDS[state] ?? "Not entered";
  if (cell.textContent.trim() !== word) cell.replaceChildren(Object.assign(document.createElement("span"), { className: `pill ${state}`, textContent: word }));
}

function records(list, count) {
  about.count = count;
  const url = new URL(location.href), plain = !["task", "kind", "authority", "level", "q", "before"].some((name) => url.searchParams.get(name));
  const shown = document.getElementById("records");
  if (pane.dataset.tab === "log") {
    if (!document.getElementById("log")) paneAgain();
    else if (!url.searchParams.get("before")) log.more();
    return;
  }
  if (pane.dataset.tab !== "records") { if (pane.dataset.tab === "timeline") paneAgain(); return; }
  if (!shown) { paneAgain(); return; }
  if (!plain) return;
  const newest = Number(shown.firstElementChild?.dataset.seq ?? -1);
  const fresh = list.filter((record) => record.seq > newest).slice(-ROWS).reverse().map(line);
  const first = shown.firstElementChild, top = first?.getBoundingClientRect().top;
  shown.prepend(...fresh);
  while (shown.children.length > ROWS) shown.lastElementChild.remove();
  if (top < 60 && first.isConnected) scrollBy({ top: first.getBoundingClientRect().top - top, behavior: "instant" });  // who reads below keeps the place
}

function putOut() {
  if (pane.dataset.tab !== "log" || new URL(location.href).searchParams.get("before")) return;
  if (document.getElementById("log")) log.more();
  else paneAgain();
}

function piece(name, words) {
  return Object.assign(document.createElement("span"), { className: name, textContent: words });
}

function where(record) {
  const both = piece("where", "");
  both.append(piece("", record.task));
  if (record.step) both.append(piece("", `/${record.step}`));
  return both;
}

function line(record) {
  const item = document.createElement("li"), link = document.createElement("a");
  item.className = record.authority;
  item.dataset.seq = record.seq;
  link.href = `${about.page}r/${record.seq}/`;
  link.dataset.into = "#record";
  const seal = piece("seal", "");
  const lock = record.authority === "commit" ? document.querySelector("#records .commit .seal .icon")?.cloneNode(true) : null;
  if (lock) seal.append(lock);
  seal.append(piece("visually-hidden", record.authority));
  link.append(piece("seq", record.seq), seal, piece("kind", record.kind), where(record), piece("text-line", record.text));
  item.append(link);
  return item;
}

function header(fresh) {
  const changed = ["state", "task", "asks", "steps", "wanted", "count"].some((name) => fresh[name] !== run[name]);
  const other = fresh.state !== run.state || fresh.asks !== run.asks;
  run = fresh;
  if (changed) renew();
  if (!other) return;
  if (fresh.state === "queued") document.getElementById("log-running")?.remove();  // its worker is gone
  putOut();
  document.title = document.title.replace(/ [a-z]+ ·/, ` ${fresh.state} ·`);
  say(`${WORDS[fresh.state] ?? fresh.state}${fresh.task ? `, task ${fresh.task}` : ""}`);
  redraw([...states.keys()]);
}

// ---- who else looks on, and whether the line stands

function place(name, ...words) {
  const here = document.getElementById(name);
  here.replaceChildren(...words);
  here.hidden = !words.length;
}

function people(message) {
  const others = message.people.filter((person) => String(person.id) !== about.user);
  const count = message.count - (message.people.length - others.length);
  if (!others.length) { place("run-people"); return; }
  const names = others.slice(0, 3).map((person) => person.name).join(", ");
  const badges = others.slice(0, 5).map((person) => {
    const badge = piece("person", person.name.slice(0, 2).toUpperCase());
    badge.setAttribute("aria-hidden", "true");
    badge.title = person.name;
    return badge;
  });
  place("run-people", ...badges, count === 1 ? `${names} is looking too` : `${names}${count > 3 ? ` and ${count - 3} more` : ""} are looking too`);
}

let awayTimer = 0;
function connection(message) {
  clearTimeout(awayTimer);
  if (message.type === "connected") place("run-line");
  else if (message.code === 4429) place("run-line", "Too many pages of yours are open for this one to be live: close some. It tries again by itself.");
  else if (message.type === "away") awayTimer = setTimeout(() => place("run-line", "Not live just now: trying to connect again."), AWAY_MS);
  else if (message.code === 4401) place("run-line", "You are signed out: what stands here is old. ", Object.assign(document.createElement("a"), { href: `${about.login}?next=${encodeURIComponent(location.pathname + location.search)}`, textContent: "Sign in again" }));
  else if (message.code === 4403 || message.code === 4404) place("run-line", "You may not see this run any more: what stands here is old.");
}

// Records and states are shown at once; after that it rests REST times as long as that took, and what comes
// meanwhile is shown together: frames go on however fast a run is and however slow a machine.
let kept = [], showing = 0, due = 0;
function show() {
  const began = performance.now(), fresh = kept.filter(({ type }) => type === "records"), changed = kept.filter(({ type }) => type === "state");
  kept = [];
  showing = 0;
  if (fresh.length) records(fresh.flatMap((message) => message.records), fresh.at(-1).count);
  if (changed.length) {
    header(changed.at(-1).run);
    nodes([...new Map(changed.flatMap((message) => message.nodes).map((node) => [node[0], node])).values()]);
    graph.taken([...new Map(changed.flatMap((message) => message.edges).map((edge) => [edge.slice(0, 3).join("|"), edge])).values()]);
  }
  pane.getBoundingClientRect();  // laying it out is a part of what it takes
  due = performance.now() + REST * (performance.now() - began);
}

function heard(message) {
  if (message.type === "records" || message.type === "state") {
    kept.push(message);
    showing ||= setTimeout(show, due - performance.now());
  } else if (message.type === "resync") paneAgain();
  else if (message.type === "end") {
    renew();
    if (pane.dataset.tab === "log") putOut();
    else paneAgain();
  }
  else if (message.type === "people") people(message);
  else if (message.type === "output") putOut();
  else if (["connected", "away", "closed"].includes(message.type)) connection(message);
}

let polling = false;
async function poll() {
  if (polling) return;
  polling = true;
  try {
    const found = JSON.parse(await text(about.live));
    header({ ...run, state: found.state, task: found.task, asks: found.asks, count: found.count });
    nodes(Object.entries(found.nodes).map(([task, [state, visits]]) => [task, state === "done" ? "succeeded" : state, visits]));
    graph.taken(found.edges);
    if (Number(about.count) !== found.count) { about.count = found.count; if (pane.dataset.tab === "log") putOut(); else paneAgain(); } else if (found.state === "running") putOut();
  } catch { /* away: the next try comes by itself */ }
  polling = false;
}

for (const [task, [state, visits]] of Object.entries(first.nodes)) states.set(task, [state === "done" ? "succeeded" : state, visits]);
log.open(document.getElementById("log"));
again();
setInterval(() => {  // what changes without a record: its place, and how long a step has taken
  if (run.state === "queued") renew();
  if (run.state === "running" && pane.dataset.tab === "timeline") paneAgain();
}, QUEUED_MS);
if (about.ended !== "true") follow(about.socket, Number(about.count) - 1, heard, poll);
document.documentElement.dataset.live = nodeName("ready");
