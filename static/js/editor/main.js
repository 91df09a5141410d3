// The editor page: text, graph, outline and properties as views of one document.
//
// The text is the only truth. Whatever changes it comes as a CodeMirror transaction, and 250 ms after the last
// one the server is asked what it means; its answer draws everything else.

import { redo, undo } from "../../vendor/codemirror.js";
import { released } from "../press.js";
import { all, banner, el, find, form, icon, later, toast } from "./dom.js";
import { Compiled } from "./compiled.js";
import { GraphPane } from "./graph.js";
import { Keeper } from "./keep.js";
import { Outline, Properties } from "./outline.js";
import { Panel } from "./panel.js";
import { panes } from "./panes.js";
import { announceVersion, presence } from "./presence.js";
import { propose } from "./propose.js";
import { announceRevision, revise } from "./revise.js";
import { save } from "./save.js";
import { ask, introduce, Offline, Refused, sentence, SignedOut } from "./server.js";
import { TextPane } from "./text.js";

const WAIT = 250;
const MOST = 100; // Findings that the server tells of one text.
const config = JSON.parse(find("#editor-config").textContent);
const root = find("#editor");
introduce(config);

let analysis = null;
let analysed = null; // The text that the analysis is about.
let versionText = config.head_text;
let asking = null;
let underWay = 0; // Questions to the server whose answers change what is shown.
let following = false; // True while the selection is set by the page itself.

// ---- what the server knows of the text

const look = later(WAIT, () => during(analyse()));

async function analyse() {
  const { text } = pane;
  if (text === analysed) return;
  asking?.abort();
  const mine = (asking = new AbortController());
  try {
    const found = await ask(config.urls.analyse, { text, task: graph.selected ?? "" }, { signal: mine.signal });
    await released(root);
    show(found, text);
  } catch (error) {
    if (mine.signal.aborted) return;
    if (error instanceof Offline || error instanceof SignedOut) {
      if (config.can_edit) keeper.failed(error);
      else banner("away", error.message);
    } else if (error instanceof Refused) toast(sentence(error), "error");
    else throw error;
  }
}

// The editor is busy from a change on, at once, until what it means is shown: until then an answer may come that
// draws anew.
function busy() {
  if (look.waiting || underWay) root.setAttribute("aria-busy", "true");
  else root.removeAttribute("aria-busy");
}

async function during(work) {
  underWay += 1;
  busy();
  try {
    return await work;
  } finally {
    underWay -= 1;
    busy();
  }
}

function show(found, text) {
  if (text !== pane.text) return;
  analysis = found;
  analysed = text;
  pane.annotate(found);
  problems(found);
  const signs = signsOf(found);
  if (found.graph) {
    graph.show(found.svg, found.graph);
    graph.problems(signs);
  }
  find("#graph-note").textContent = found.note || (found.graph?.nodes.length ? "" : "No task yet: press + Task, or type TASK in the text.");
  outline.show(found.graph, signs);
  properties.show(graph.selected, found.graph, found.triggers);
  if (found.panel?.task && found.panel.task === (graph.selected || graph.first)) detail.take(found.panel, found.panel.task, text);
  else during(detail.show(graph.selected));
  if (root.dataset.ready !== "true") performance.mark("spak-ready");
  root.dataset.ready = "true";
}

// Which tasks have a finding inside, and the worst of them.
function signsOf(found) {
  const tasks = [];
  const walk = (items) => items.forEach((item) => (item.kind === "task" && tasks.push(item), walk(item.children)));
  walk(found.outline);
  const signs = new Map();
  for (const item of found.diagnostics) {
    if (item.severity === "info") continue;
    const task = tasks.find((one) => one.from <= item.from && item.from < one.to);
    if (!task) continue;
    const before = signs.get(task.name);
    if (before?.severity === "error") continue;
    signs.set(task.name, { severity: item.severity, text: `${item.severity}: ${item.message}` });
  }
  return signs;
}

// ---- problems

function problems(found) {
  const list = find("#problems-list");
  const count = (severity) => found.diagnostics.filter((item) => item.severity === severity).length;
  const [errors, warnings, notes] = ["error", "warning", "info"].map(count);
  const words = [
    [errors, "error", "errors"],
    [warnings, "warning", "warnings"],
    [notes, "note", "notes"],
  ].flatMap(([number, one, many]) => (number ? [`${number} ${number === 1 ? one : many}`] : []));
  const summary = find("#problems-summary");
  summary.replaceChildren(icon(errors ? "error" : warnings ? "warning" : "tick"), el("span", {}, (words.join(", ") || "No problems") + (found.diagnostics.length >= MOST ? ", and perhaps more" : "")));
  summary.className = errors ? "error" : warnings ? "warning" : "good";
  const held = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(
    ...found.diagnostics.map((item) =>
      el(
        "li",
        { class: item.severity },
        el("button", { type: "button", class: "place", onclick: () => pane.show(item.from, item.to) }, icon(item.severity), el("span", { class: "line" }, `Line ${item.line}`), el("span", { class: "what" }, item.message), item.hint ? el("span", { class: "hint" }, item.hint) : null),
        config.can_edit ? item.fixes.map((fix) => el("button", { type: "button", class: "button small fix", onclick: () => pane.fix(item, fix) }, fix.title)) : null,
      ),
    ),
  );
  find("#problems").classList.toggle("none", !found.diagnostics.length);
  if (held >= 0) ([...list.querySelectorAll("button")].slice(0, held + 1).pop() ?? pane.view).focus();  // the next problem
}

// ---- edits: an operation becomes changes of the text, one transaction, one step of undo

let chain = Promise.resolve();

function edit(ops, after = () => {}) {
  const run = async () => {
    const { text } = pane;
    try {
      const answer = await ask(config.urls.edit, { text, ops });
      await released(root);
      if (pane.text !== text) throw new Refused(409, { message: "The text changed meanwhile.", hint: "Try again." });
      pane.apply(answer.changes);
      look.cancel();
      show(answer.analysis, pane.text);
      if (answer.changes.length) announce(answer.said);
      after(answer);
      return "";
    } catch (error) {
      if (error instanceof Offline || error instanceof SignedOut) keeper.failed(error);
      else if (!(error instanceof Refused)) throw error;
      properties.again();
      properties.show(graph.selected, analysis?.graph, analysis?.triggers ?? []);
      return sentence(error);
    }
  };
  const done = chain.then(run);
  chain = done.catch(() => {});
  return during(done);
}

async function tried(ops, after) {
  const wrong = await edit(ops, after);
  if (wrong) toast(wrong, "error");
}

function announce(words) {
  find("#said").textContent = words;
}

const names = () => (analysis?.graph?.nodes ?? []).map((node) => node.id);
const choose = (name) => () => select(name, { focus: true });

const acts = {
  async add(after) {
    const values = { op: "add_task" };
    const done = await form("New task", [
      { name: "name", label: "Name", required: true, help: "A word: letters, digits, _ and -." },
      { name: "goal", label: "Goal (may stay empty)" },
    ], { submit: "Add task", check: ({ name, goal }) => edit([{ ...values, name, ...(goal ? { goal } : {}), ...(after && names().includes(after) ? { after } : {}) }]) });
    if (done) select(done.name, { focus: true, reveal: true });
  },
  create: (name) => tried([{ op: "create_missing_task", name }], choose(name)),
  start: (name) => tried([{ op: "set_start", task: name }]),
  goal: (name, goal) => tried([goal ? { op: "set", task: name, key: "GOAL", value: goal } : { op: "clear", task: name, key: "GOAL" }]),
  async rename(name) {
    const done = await form(`Rename ${name}`, [{ name: "new", label: "New name", value: name, required: true }], {
      submit: "Rename",
      check: ({ new: chosen }) => {
        graph.renamed = { [name]: chosen };
        return chosen === name ? "" : edit([{ op: "rename_task", name, new: chosen }]);
      },
    });
    if (done) select(done.new, { focus: true });
  },
  async remove(name) {
    const edges = (analysis?.graph?.edges ?? []).filter((edge) => edge.to === name && edge.from !== name);
    const text = edges.length ? `${edges.length === 1 ? "One edge leads" : `${edges.length} edges lead`} here (${edges.map((edge) => edge.from).join(", ")}); ${edges.length === 1 ? "it goes" : "they go"} too.` : "";
    const done = await form(`Delete ${name}?`, [], { submit: "Delete task", danger: true, text: `${text} Undo brings it back.`.trim(), check: () => edit([{ op: "remove_task", name, edges: true }]) });
    if (done) toast(`Task ${name} deleted.`, "info", { label: "Undo", run: goBack });
  },
  // `target`: a task, "" for a place where there is none yet, null where it is to be asked for.
  async connect(name, target) {
    const used = (analysis?.graph?.edges ?? []).filter((edge) => edge.from === name).map((edge) => edge.trigger);
    const known = [...(analysis?.triggers ?? ["success", "fail", "timeout"])];
    const free = known.filter((trigger) => !used.includes(trigger));
    const others = names().filter((other) => other !== name);
    const fields = [{ name: "trigger", label: "When it ends with", value: free[0] ?? "", choices: free, required: true }];
    if (target === null) fields.push({ name: "target", label: "Go on to", options: [...others, name], value: others[0] ?? name });
    if (target === "") fields.push({ name: "target", label: "Go on to a new task named", value: "", required: true });
    const title = target ? `${name} → ${target}` : `Edge from ${name}`;
    const done = await form(title, fields, {
      submit: target === "" ? "Add task and edge" : "Add edge",
      check: ({ trigger, target: chosen }) => {
        const to = target || chosen;
        const edge = { op: "add_edge", task: name, trigger, target: to };
        return edit(names().includes(to) ? [edge] : [{ op: "add_task", name: to, after: name }, edge]);
      },
    });
    if (done) select(name, { focus: true });
  },
};

function goBack() {
  undo(pane.view);
}

// ---- selection: a node, its line and its row in the outline find each other

function symbolOf(name) {
  let found = null;
  const walk = (items) => items.forEach((item) => (item.kind === "task" && item.name === name && !found && (found = item), walk(item.children)));
  walk(analysis?.outline ?? []);
  return found;
}

function select(name, options = {}) {
  graph.select(name, { ...options, tell: false });
  outline.select(name);
  properties.show(name, analysis?.graph, analysis?.triggers ?? []);
  during(detail.show(name));
}

// To the task in the text; `focus` moves the keyboard there too.
function open(name, focus) {
  if (analysed !== pane.text) return;
  const symbol = symbolOf(name);
  const node = analysis?.graph?.nodes.find((item) => item.id === name);
  following = true;
  if (symbol) pane.show(symbol.at, symbol.at + (focus ? 0 : name.length), focus);
  else if (node?.file) toast(`${name} comes from ${node.file}.`);
  else if (node && node.line <= pane.view.state.doc.lines) pane.show(pane.view.state.doc.line(node.line).from, undefined, focus);
  following = false;
  if (focus) tab("text");
}

const follow = later(120, (at) => {
  if (analysed !== pane.text || !graph.svg) return;
  let name = "";
  const walk = (items) => items.forEach((item) => (item.kind === "task" && item.from <= at && at <= item.to && (name = item.name), walk(item.children)));
  walk(analysis.outline);
  if (name && name !== graph.selected) select(name);
});

// ---- the panes

const pane = new TextPane(find("#text-pane"), config, {
  save: () => config.can_edit && (config.patch?.opened ? revise : config.patch || config.protected ? propose : save)(config, () => pane.text, keeper, saving),
  change(text) {
    look();
    busy();
    if (config.can_edit) keeper.change(text);
    steps();
  },
  cursor: (at) => !following && pane?.view.hasFocus && follow(at),
  stale: () => analysed !== pane.text,
  analysis: () => (analysed === pane.text ? analysis : null),
  undo: goBack,
});

const graph = new GraphPane(find("#graph-pane"), {
  editable: config.can_edit,
  ...acts,
  open,
  select(name) {
    outline.select(name);
    properties.show(name, analysis?.graph, analysis?.triggers ?? []);
    during(detail.show(name));
  },
  edge(from, to, line) {
    select(from);
    following = true;
    const inside = analysis?.graph?.nodes.find((item) => item.id === from)?.file;
    if (!inside && analysed === pane.text && line <= pane.view.state.doc.lines) pane.show(pane.view.state.doc.line(line).from, undefined, false);
    following = false;
  },
  zoomed: (scale) => (find("#zoom-value").textContent = `${Math.round(scale * 100)}%`),
});

const outline = new Outline(find("#outline-pane"), {
  ...acts,
  open: (name) => open(name, true),
  select(name) {
    select(name, { reveal: true });
    open(name, false);
  },
});

const [basics, details] = [el("div", { class: "basics" }), el("div", { class: "task-form" })];
find("#properties-pane").append(basics, details);
const properties = new Properties(basics, {
  editable: config.can_edit,
  ...acts,
  edit: tried,
});
const detail = new Panel(details, {
  editable: config.can_edit,
  text: () => pane.text,
  ask: (task) => ask(config.urls.panel, { text: pane.text, task }),
  last: (task) => ask(config.urls.last, { task }),
  complete: (text, at) => ask(config.urls.complete, { text, at }).catch(() => null),
  edit,
  undo: goBack,
});

const compiled = new Compiled(find("#compiled-pane"), config, () => pane.text, () => {
  tab("text");
  const first = analysis?.diagnostics.find((item) => item.severity === "error");
  if (first) pane.show(first.from, first.to);
});

// ---- drafts and versions

const keeper = new Keeper(config, {
  state(state, at) {
    find("#draft-state").textContent = { typing: "Typing…", kept: `Draft saved ${new Date(at).toLocaleTimeString()}`, local: "Kept in this browser" }[state];
  },
  back(was) {
    analysed = null;
    during(analyse());
    toast(was === "offline" ? "The server is back; your text is saved as a draft." : "You are signed in again; your text is saved as a draft.");
  },
});

const saving = {
  versionText: () => versionText,
  replace: (text) => pane.replace(text),
  analysis: () => analysis,
  saved({ version, sent }) {
    versionText = sent;
    banner("draft");
    find("#version").textContent = `v${version}`;
    find("#draft-state").textContent = "";
    steps();
  },
};

function steps() {
  const changed = pane.text !== versionText;
  root.dataset.changed = String(changed);
  for (const button of all("[data-act=save], [data-act=propose], [data-act=revise]")) button.disabled = !changed;
}

async function begin() {
  const kept = config.can_edit ? keeper.remembered() : null;
  if (kept) {
    keeper.base = Math.min(kept.base, config.base_version) || config.base_version;
    pane.replace(kept.text);
    const drop = () => {
      banner("draft");
      keeper.base = config.base_version;
      pane.replace(config.text);
    };
    banner("draft", `Restored unsaved text from this browser (${new Date(kept.at).toLocaleString()}). The server does not have it yet.`, { label: "Use the server's text", run: drop }, { label: "Keep it", run: () => banner("draft") });
  } else if (config.draft) {
    const drop = async () => {
      const answer = await ask(config.urls.draft, { drop: true });
      keeper.base = answer.base_version;
      keeper.kept = answer.text;
      versionText = answer.text;
      pane.replace(answer.text);
      keeper.forget();
      banner("draft");
      banner("newer");
      find("#version").textContent = `${config.patch ? "revision " : "v"}${answer.base_version}`;
    };
    banner("draft", `Your draft of ${new Date(config.draft.saved_at).toLocaleString()} is open.`, { label: "Discard draft", run: () => drop().catch((error) => toast(error.message, "error")) }, { label: "Keep it", run: () => banner("draft") });
  }
  if (config.patch && !config.patch.opened) banner("newer", `Patch ${config.patch.number} is merged or closed. Your text can be proposed as a patch of its own.`, { label: "Open the patch", href: config.patch.url });
  else if (config.patch && keeper.base < config.head_version) announceRevision(config, keeper, { by: config.head_author, revision: config.head_version }, saving);
  else if (keeper.base < config.head_version) announceVersion({ by: config.head_author, version: config.head_version, base: keeper.base }, config, true);
  steps();
  await during(analyse());
  graph.select(graph.first, { tell: false });
  select(graph.first);
}

presence(config, find("#presence"), {
  saved(news) {
    if (!config.patch && news.version > keeper.base) announceVersion(news, config, pane.text !== versionText);
  },
});

// ---- buttons, tabs, keys of the page

const buttons = {
  save: () => pane.on.save(),
  revise: () => pane.on.save(),
  propose: () => propose(config, () => pane.text, keeper, saving),
  format: () => pane.format(),
  add: () => acts.add(graph.selected),
  undo: goBack,
  redo: () => redo(pane.view),
  "zoom-in": () => graph.zoom(1.25),
  "zoom-out": () => graph.zoom(0.8),
  fit: () => graph.fit(),
  try: () => tab("compiled"),
};
// What is not saved would not be in the run.
find("[data-run]", root)?.addEventListener("click", (event) => {
  if (!find("[data-act=save]", root) || pane.text === versionText || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  save(config, () => pane.text, keeper, saving, event.currentTarget.href);
});
for (const button of all("[data-act]", root)) button.addEventListener("click", () => buttons[button.dataset.act]());

const TABS = all("[role=tab]", root);
function tab(name) {
  const main = name === "compiled" ? "compiled" : "edit";
  root.dataset.main = main;
  if (name !== "compiled" && name !== "edit") root.dataset.narrow = name;
  const narrow = matchMedia("(max-width: 860px)").matches;
  for (const one of TABS) {
    const on = narrow && main === "edit" ? one.dataset.tab === root.dataset.narrow : one.dataset.tab === main;
    one.setAttribute("aria-selected", String(on));
    one.tabIndex = on ? 0 : -1;
  }
  if (main === "compiled") compiled.show();
  else graph.looked ? graph.frame() : graph.fit();
}
for (const one of TABS) {
  one.addEventListener("click", () => tab(one.dataset.tab));
  one.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const shown = TABS.filter((item) => item.offsetParent);
    const next = shown[(shown.indexOf(one) + step + shown.length) % shown.length];
    next.focus();
    tab(next.dataset.tab);
  });
}
matchMedia("(max-width: 860px)").addEventListener("change", () => tab(root.dataset.main === "compiled" ? "compiled" : "edit"));

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s" && !event.defaultPrevented) {
    event.preventDefault();
    buttons.save();
  } else if ((event.ctrlKey || event.metaKey) && !pane.view.dom.contains(event.target) && !event.target.closest?.("input, textarea, select, dialog")) {
    const act = { z: event.shiftKey ? redo : undo, y: redo }[event.key.toLowerCase()];
    if (!act || !config.can_edit) return;
    event.preventDefault();
    act(pane.view);
  }
});

// The list of keys that every page has, with those of this one.
find("#keys dl")?.append(
  ...[
    ["Ctrl S", "Save a version"],
    ["Ctrl Z, Ctrl Y", "Undo, redo: text and graph alike"],
    ["Ctrl Space", "What may stand here"],
    ["F1", "The documentation of the word"],
    ["F12, Shift F12", "Where a name is given; all its places"],
    ["F2", "Rename"],
    ["Ctrl .", "Fix the problem of this line"],
    ["Shift Alt F", "Lay the text out"],
    ["Esc, then Tab", "Leave the text"],
    ["N, C, S", "In the graph: new task, connect, start here"],
    ["Del, Enter, F", "In the graph: delete, go to the text, fit"],
  ].map(([keys, words]) => el("div", {}, el("dt", {}, el("kbd", {}, keys)), el("dd", {}, words))),
);

panes(root);
tab("edit");
begin();
