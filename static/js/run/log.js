// The log of a run, live: what comes is added below, and followed unless somebody scrolled up. Takes a function
// that fetches the entries after a record as rows of HTML.

const EACH_MS = 400, MOST = 500, NEAR = 40;

export class Log {
  constructor(fetchAfter) {
    this.fetchAfter = fetchAfter;
    this.list = null;
    this.timer = 0;
  }

  open(list) {
    if (this.list === list) return;
    this.list = list;
    if (!list) return;
    this.box = list.parentElement;
    this.button = document.getElementById("log-follow");
    this.following = true;
    this.down();
    this.box.addEventListener("scroll", () => {
      this.following = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < NEAR;
      this.button.hidden = this.following;
    }, { passive: true });
    this.button.addEventListener("click", () => { this.following = true; this.down(); });
  }

  down() {
    this.box.scrollTop = this.box.scrollHeight;
    this.button.hidden = true;
  }

  more() {
    this.timer ||= setTimeout(() => this.add(), EACH_MS);
  }

  async add() {
    const list = this.list;
    if (list) {
      const after = list.lastElementChild?.dataset.seq ?? -1;
      try {
        const rows = await this.fetchAfter(after);
        if (this.list === list && (list.lastElementChild?.dataset.seq ?? -1) === after) list.insertAdjacentHTML("beforeend", rows);
        while (list.children.length > MOST) list.firstElementChild.remove();
        if (this.following) this.down();
      } catch { /* the next record tries again */ }
    }
    this.timer = 0;
  }
}
