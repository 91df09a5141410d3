// The tabs of a run's page. The address of the page says which tab, filter and record are shown; `load` shows
// another address, `refresh` shows the same again, and `records` takes in new records as the tab can.

import { released } from "../press.js";
import { button, byId } from "./dom.js";
import { Log } from "./log.js";
import { append, prepend } from "./records.js";
import { Aborted, paced } from "./requests.js";

const EACH_MS = 2500, EMPTY_MS = 150, FOLLOW_MS = 2000;
const FILTERS = ["task", "kind", "authority", "level", "q", "before"];

export class Pane {
  constructor(element, requests, failed) {
    this.element = element;
    this.requests = requests;
    this.live = true;  // false once the run has ended: how it ended is shown at once
    const pace = () => (this.live && (this.tab === "workspace" || element.querySelector("[data-seq]")) ? EACH_MS : EMPTY_MS);
    this.refresh = paced(() => this.again(), pace, failed);
    this.log = new Log((after) => requests.text("log", `?tab=log&after=${after}`, { headers: { "HX-Target": "log" } }), failed);
    this.log.open(byId("log"));
    element.addEventListener("keydown", alongTimeline);
    this.olderOnScroll();
    this.follow();
  }

  // What a worker does outside of the run, such as pushing a branch, has no record: it is asked for until it is done.
  follow() {
    clearTimeout(this.following);
    if (this.element.querySelector("[data-follow]")) this.following = setTimeout(() => (this.refresh(), this.follow()), FOLLOW_MS);
  }

  get tab() {
    return this.element.dataset.tab;
  }

  // Somebody scrolled to older records: the list takes in new ones, but is not drawn anew.
  get hasOlder() {
    return Boolean(byId("records")?.dataset.older);
  }

  fetch(url) {
    return this.requests.text("pane", url, { headers: { "HX-Target": "pane" } });
  }

  // Another address, chosen by somebody: what went wrong is said in the pane.
  async load(address) {
    const url = new URL(address, location.href);
    this.element.setAttribute("aria-busy", "true");
    try {
      const html = await this.fetch(url);
      history.replaceState(null, "", url);
      this.note?.remove();
      this.show(html, url);
    } catch (error) {
      if (error instanceof Aborted) return;
      const note = Object.assign(document.createElement("p"), { className: "message error", textContent: `${error.message} ` });
      note.setAttribute("role", "alert");
      note.append(button("Try again", () => this.load(address)));
      this.note?.remove();
      this.element.before(note);  // not in the pane: what was shown is shown on, and drawn anew
      this.note = note;
    }
    this.element.removeAttribute("aria-busy");
  }

  async again() {
    const focused = document.activeElement;
    if (this.element.contains(focused) && focused.matches("input, select")) return;
    if (this.element.hasAttribute("aria-busy")) return;  // somebody chose another tab meanwhile
    if (this.hasOlder) return;
    const asked = location.href, html = await this.fetch(asked);
    await released(this.element);
    if (location.href !== asked || this.hasOlder || this.element.hasAttribute("aria-busy")) return;
    if (byId("log")) {  // it grows by itself, and keeps its place
      this.moreOutput();
      return;
    }
    const restore = position(this.element);
    this.show(html, new URL(asked));
    restore();
  }

  show(html, url) {
    this.element.innerHTML = html;
    const tab = url.searchParams.get("tab") ?? document.querySelector(".detail-side .tabs a").dataset.tab;
    this.element.dataset.tab = tab;
    this.log.open(byId("log"));
    this.olderOnScroll();
    this.follow();
    for (const link of document.querySelectorAll(".detail-side .tabs a")) {
      if (link.dataset.tab === tab) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  // Whoever scrolls to the end of the list of records gets older ones; the link stays for who does not scroll.
  olderOnScroll() {
    this.end?.disconnect();
    const list = byId("records"), link = this.element.querySelector("a[rel=next]");
    if (!list || !link) return;
    this.end = new IntersectionObserver(async (seen) => {
      if (!seen.at(-1).isIntersecting) return;  // a busy page hears of several changes at once
      this.end.unobserve(link);
      try {
        const html = await this.requests.text("older", link.href, { headers: { "HX-Target": "pane" } });
        if (list.isConnected && append(list, link, html)) this.end.observe(link);
      } catch { /* the link is still there to be clicked */ }
    }, { rootMargin: "300px" });
    this.end.observe(link);
  }

  // Records were missed: the whole tab anew, also where somebody scrolled to older ones.
  redraw() {
    byId("records")?.removeAttribute("data-older");
    this.refresh();
  }

  // New records came: the log and an unfiltered list take them in, a timeline is drawn again.
  records(records, page) {
    const asked = new URL(location.href).searchParams, list = byId("records");
    if (this.tab === "log") {
      if (!byId("log")) this.refresh();
      else if (!asked.get("before")) this.log.more();
    } else if (["timeline", "session", "workspace"].includes(this.tab) || (this.tab === "records" && !list)) this.refresh();
    else if (this.tab === "records" && !FILTERS.some((name) => asked.get(name))) prepend(list, records, page);
  }

  // A running tool wrote something, which no record holds yet.
  moreOutput() {
    if (this.tab !== "log" || new URL(location.href).searchParams.get("before")) return;
    if (byId("log")) this.log.more();
    else this.refresh();
  }
}

// Where somebody is in the pane: what is open, scrolled and in focus, and the record that was opened or is on its way.
// Gives what finds it again after a redraw.
function position(pane) {
  const named = (summary) => summary.textContent.replace(/[\d,]+/g, "");
  const open = new Set([...pane.querySelectorAll("details[open] > summary")].map(named));
  const focused = pane.contains(document.activeElement) ? document.activeElement : null;
  const record = pane.querySelector("#record"), row = focused?.closest("#records > li")?.dataset.seq;
  const seq = focused?.dataset.seq, summary = focused?.matches("summary") ? named(focused) : null;
  const { scrollLeft = 0, scrollTop = 0 } = pane.querySelector(".timeline-scroll") ?? {};
  return () => {
    for (const one of pane.querySelectorAll("details > summary")) {
      if (open.has(named(one))) one.parentElement.open = true;
      if (named(one) === summary) one.focus({ preventScroll: true });
    }
    if (record) pane.querySelector("#record")?.replaceWith(record);
    if (record?.contains(focused)) focused.focus({ preventScroll: true });
    if (row) pane.querySelector(`#records > li[data-seq="${row}"] a`)?.focus({ preventScroll: true });
    if (seq) pane.querySelector(`.timeline-svg a[data-seq="${seq}"]`)?.focus({ preventScroll: true });
    Object.assign(pane.querySelector(".timeline-scroll") ?? {}, { scrollLeft, scrollTop });
  };
}

function alongTimeline(event) {  // Tab goes from step to step, arrows along the attempts of one
  const bar = event.target.closest(".timeline-svg a");
  const next = { ArrowLeft: bar?.previousElementSibling, ArrowRight: bar?.nextElementSibling }[event.key];
  if (!next?.matches("a")) return;
  event.preventDefault();
  next.focus();
}
