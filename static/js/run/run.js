// The page of a run, live. The parts: the head (header.js), the tasks in graph and table (tasks.js), the tabs
// (pane.js), who else looks on (people.js), the connection (connection.js). This file reads the page's data,
// hands each message of the stream to the parts, and follows clicks. What the address says (tab, filter,
// record) is what is shown; a reload shows the same. Every link works without this file.

import { panes } from "../editor/panes.js";
import { Connection } from "./connection.js";
import { Announcer, button, byId } from "./dom.js";
import { Draft } from "./draft.js";
import { nodeName } from "./graph.js";
import { Header } from "./header.js";
import { Pane } from "./pane.js";
import { showPeople } from "./people.js";
import { mark } from "./records.js";
import { Aborted, Requests } from "./requests.js";
import { follow } from "./stream.js";
import { Tasks, WORDS } from "./tasks.js";

const QUEUED_MS = 5000, CHECK_MS = 500, REST = 3, FRAMES_MS = 34, PAINT_MS = 500;
const SHOWN = ["state", "task", "asks", "steps", "wanted", "count"];

class RunPage {
  constructor(about, live) {
    this.about = about;
    this.run = { state: byId("run-head").dataset.state, task: "" };
    this.messages = [];
    this.timer = this.due = 0;
    const failed = (error) => this.connection.failed(error);
    this.connection = new Connection("run-line", about.login);
    this.announcer = new Announcer();
    this.requests = new Requests();
    this.header = new Header(this.requests, about.head, failed, () => this.continueCheck(), () => this.draft?.restore());
    this.tasks = new Tasks(live, this.run);
    this.pane = new Pane(byId("pane"), this.requests, failed);
  }

  start() {
    if (location.pathname !== this.about.page) history.replaceState(null, "", this.about.page);  // a form that was refused
    document.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("keydown", (event) => this.pressed(event));
    document.addEventListener("submit", (event) => this.submitted(event));
    const columns = document.querySelector(".run-columns");  // a guarded session has no graph
    if (columns) panes(columns, "spak-run-panes");
    this.continueCheck();
    this.draft = new Draft(this.about, (path) => this.opened([...document.querySelectorAll("#run-ask [data-edit]")].find((one) => one.dataset.edit === path)));
    setInterval(() => this.tick(), QUEUED_MS);
    if (this.about.ended !== "true") follow(this.about.socket, Number(this.about.count) - 1, (message) => this.heard(message), () => this.poll());
    document.documentElement.dataset.live = nodeName("ready");
  }

  // ---- messages

  heard(message) {
    if (message.type === "records" || message.type === "state") {
      this.messages.push(message);
      this.timer ||= setTimeout(() => this.show(), this.due - performance.now());
    } else if (message.type === "resync") this.pane.redraw();
    else if (message.type === "end") this.ended();
    else if (message.type === "people") showPeople(message, this.about.user);
    else if (message.type === "output") {
      this.output(message.line);
      this.pane.moreOutput();
    }
    else if (message.type === "connected" || message.type === "away" || message.type === "closed") this.connection.heard(message);
  }

  // The last line of what the running tool or search puts out; its record ends it.
  output(line) {
    const place = byId("run-output");
    if (place) place.textContent = line;
  }

  // Records and states are shown at once; then the page rests REST times as long as that took until it was
  // painted, and what comes meanwhile is shown together: frames go on however fast a run is and however slow a
  // machine.
  show() {
    const began = performance.now(), messages = this.messages;
    if (this.due > began + 1) {  // the last ones took longer to paint than to make
      this.timer = setTimeout(() => this.show(), this.due - began);
      return;
    }
    this.messages = [];
    this.timer = 0;
    const records = messages.filter(({ type }) => type === "records"), states = messages.filter(({ type }) => type === "state");
    if (records.length) {
      this.output("");
      this.about.count = records.at(-1).count;
      this.pane.records(records.flatMap((message) => message.records), this.about.page);
    }
    if (states.length) {
      this.changed(states.at(-1).run);
      const nodes = new Map(states.flatMap((message) => message.nodes).map((node) => [node[0], node]));
      const edges = new Map(states.flatMap((message) => message.edges).map((edge) => [edge.slice(0, 3).join("|"), edge]));
      this.tasks.update([...nodes.values()], [...edges.values()]);
    }
    this.pane.element.getBoundingClientRect();  // laying it out is a part of what it takes
    const rest = (took) => { this.due = Math.max(this.due, performance.now() + REST * took); };
    rest(performance.now() - began);
    const painted = () => rest(Math.min(performance.now() - began - FRAMES_MS, PAINT_MS));  // a hidden page waits long
    requestAnimationFrame(() => requestAnimationFrame(painted));
  }

  changed(fresh) {
    const old = this.run;
    this.run = fresh;
    if (SHOWN.some((name) => fresh[name] !== old[name])) this.header.renew();
    if (fresh.state === old.state && fresh.asks === old.asks) return;
    if (fresh.state === "queued") byId("log-running")?.remove();  // its worker is gone
    this.pane.moreOutput();
    const shown = fresh.by_own_tests?.length ? "own-tests" : fresh.checked === false ? "unchecked" : fresh.state;
    document.title = document.title.replace(/ [a-z-]+ ·/, ` ${shown} ·`);
    this.announcer.say(`${WORDS[shown] ?? shown}${fresh.task ? `, task ${fresh.task}` : ""}`);
    this.tasks.follow(fresh);
  }

  ended() {
    this.pane.live = false;
    this.header.renew();
    if (this.pane.tab === "log") this.pane.moreOutput();
    else this.pane.refresh();
  }

  // Where no socket opens.
  async poll() {
    try {
      const found = JSON.parse(await this.requests.text("poll", this.about.live));
      this.changed({ ...this.run, state: found.state, task: found.task, asks: found.asks, count: found.count });
      this.tasks.update(Object.entries(found.nodes).map(([task, [state, ...used]]) => [task, state === "done" ? "succeeded" : state, ...used]), found.edges);
      if (Number(this.about.count) === found.count && found.state !== "running") return;
      const changed = Number(this.about.count) !== found.count;
      this.about.count = found.count;
      if (this.pane.tab === "log") this.pane.moreOutput();
      else if (changed) this.pane.redraw();
    } catch { /* the page says already that it is not live, and the next try comes by itself */ }
  }

  tick() {  // what changes without a record: the place in a queue, and how long a step has taken
    if (this.run.state === "queued") this.header.renew();
    if (["running", "waiting"].includes(this.run.state) && ["timeline", "session"].includes(this.pane.tab)) this.pane.refresh();
  }

  // ---- what somebody does

  // Shows an address in a place of the page; a failure is said there, with a way to try again.
  async into(selector, address, options) {
    const place = document.querySelector(selector);
    try {
      place.innerHTML = await this.requests.text(`into ${selector}`, address, options);
    } catch (error) {
      if (error instanceof Aborted) return null;
      const note = Object.assign(document.createElement("p"), { className: "message error", textContent: `${error.message} ` });
      note.setAttribute("role", "alert");
      note.append(button("Try again", () => this.into(selector, address, options)));
      place.replaceChildren(note);
      return null;
    }
    this.continueCheck();
    return place;
  }

  continueCheck() {  // a check that is under way: asked for until it has ended
    const form = document.querySelector("#checked form[data-again]");
    if (form) setTimeout(() => { if (form.isConnected) form.requestSubmit(); }, CHECK_MS);
  }

  clicked(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const link = event.target.closest("a[href]"), node = event.target.closest("#run-graph .node[role=button]");
    if (link?.dataset.edit) {
      event.preventDefault();
      this.edit(link);
    } else if (link?.dataset.into) {
      event.preventDefault();
      this.open(link);
    } else if (link) this.followed(event, link);
    else if (node) this.pane.load(`?tab=records&task=${encodeURIComponent(node.dataset.task)}`);
  }

  async edit(link) {
    (await this.opened(link))?.querySelector("textarea").focus();
  }

  // The file in the form of the question, beside those that are open; undefined where it can no longer be edited.
  async opened(link) {
    if (!link) return undefined;
    const place = byId("edits"), path = link.dataset.edit;
    const opened = () => [...place.querySelectorAll(".edit")].find((one) => one.dataset.path === path);
    if (!opened()) {
      try {
        const html = await this.requests.text(`edit ${path}`, link.href, { headers: { "HX-Target": "edits" } });
        const fresh = new DOMParser().parseFromString(html, "text/html").querySelector(".edit");
        if (!fresh) throw new Error("This file can no longer be edited here.");
        fresh.dataset.opened = "";
        place.append(fresh);
      } catch (error) {
        if (!(error instanceof Aborted)) this.announcer.say(error.message);
      }
    }
    return opened();
  }

  async open(link) {
    const place = await this.into(link.dataset.into, link.href);
    if (!place || link.dataset.into !== "#record") return;
    mark(this.pane.element.querySelector(".records"), link.href);
    if (place.getBoundingClientRect().top < 60) place.scrollIntoView({ block: "start" });
    place.querySelector("#record-title")?.focus({ preventScroll: true });
  }

  async followed(event, link) {
    const here = new URL(link.href.baseVal ?? link.href, location.href);
    if (here.pathname !== location.pathname || !here.search || link.closest(".topbar")) return;
    event.preventDefault();
    await this.pane.load(here);
    const top = this.pane.element.getBoundingClientRect().top;
    if (here.searchParams.has("before") && top < 0) this.pane.element.scrollIntoView({ block: "start" });
    if (here.hash) document.querySelector(here.hash)?.scrollIntoView({ block: "nearest" });
  }

  pressed(event) {
    const node = event.target.closest?.("#run-graph .node[role=button]");
    if (!node || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  }

  submitted(event) {
    const form = event.target;
    if (form.dataset.into) {
      event.preventDefault();
      this.into(form.dataset.into, form.action, { method: "POST", body: new FormData(form) });
    } else if (this.pane.element.contains(form) && form.method === "get") {
      event.preventDefault();
      this.pane.load(`?${new URLSearchParams([...new FormData(form)].filter(([, value]) => value))}`);
    }
  }
}

new RunPage(byId("run").dataset, JSON.parse(byId("run-live").textContent)).start();
