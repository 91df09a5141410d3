// The log of a run, live: what comes is added below, and followed unless somebody scrolled up. Takes a function
// that fetches the entries after a record as rows of HTML; the last row may be a tool that still runs, with no
// record, which takes the place of the one before. `failed` hears errors, and null when the entries came.

import { Aborted } from "./requests.js";

const EACH_MS = 400, AGAIN_MS = 3000, MOST = 500, NEAR = 40;

export class Log {
  constructor(fetchAfter, failed) {
    this.fetchAfter = fetchAfter;
    this.failed = failed;
    this.list = null;
    this.timer = this.again = 0;
    this.missed = false;
  }

  open(list) {
    if (this.list === list) return;
    this.list = list;
    if (!list) return;
    this.box = list.parentElement;
    this.button = document.getElementById("log-follow");
    this.following = true;
    const shown = list.lastElementChild?.querySelector("pre");
    if (shown) shown.scrollTop = shown.scrollHeight;
    this.down();
    this.lookAgain();
    this.box.addEventListener("scroll", () => {
      this.following = ending(this.box);
      this.button.hidden = this.following;
    }, { passive: true });
    this.button.addEventListener("click", () => { this.following = true; this.down(); });
  }

  down() {
    this.box.scrollTop = this.box.scrollHeight;
    this.button.hidden = true;
  }

  more() {
    if (this.timer) this.missed = true;
    else this.timer = setTimeout(() => this.add(), EACH_MS);
  }

  lookAgain() {  // whoever runs it may be gone, and then no message comes
    clearTimeout(this.again);
    this.again = this.list.querySelector("#log-running") ? setTimeout(() => this.more(), AGAIN_MS) : 0;
  }

  async add() {
    const list = this.list;
    this.missed = false;
    if (list) {
      const after = newest(list);
      try {
        const rows = await this.fetchAfter(after);
        if (this.list === list && newest(list) === after) this.put(rows);
        this.failed(null);
      } catch (error) {  // the next record tries again
        if (!(error instanceof Aborted)) this.failed(error);
      }
    }
    this.timer = 0;
    if (this.missed) this.more();
  }

  put(html) {
    const rows = document.createElement("template"), list = this.list;
    rows.innerHTML = html;
    const before = list.querySelector("#log-running"), running = rows.content.querySelector("#log-running");
    const last = before?.querySelector("pre"), atEnd = !last || ending(last), top = last?.scrollTop;
    if (before && running && !rows.content.querySelector("[data-seq]")) {
      if (last.textContent !== running.querySelector("pre").textContent) last.textContent = running.querySelector("pre").textContent;
    } else {
      const record = before && rows.content.querySelector("[data-seq] pre");
      before?.remove();
      list.append(rows.content);
      if (record && atEnd) record.scrollTop = record.scrollHeight;  // where it was when it was still running
    }
    const shown = list.querySelector("#log-running pre");
    if (shown) shown.scrollTop = atEnd ? shown.scrollHeight : top;
    this.lookAgain();
    while (list.children.length > MOST) list.firstElementChild.remove();
    if (this.following) this.down();
  }
}

function newest(list) {
  return [...list.querySelectorAll("[data-seq]")].at(-1)?.dataset.seq ?? -1;
}

function ending(box) {
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
}
