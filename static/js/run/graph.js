// The graph of a run: states of its nodes, how often each edge was taken. Takes [task, state, visits] and
// [from, signal, to, times, slips]; changes attributes of the drawing that the server made, and no place in it.

const LABELS = { queued: "queued", running: "running", waiting: "waiting", paused: "paused", done: "succeeded", allowed: "last step failed", failed: "failed", refused: "refused", cancelled: "cancelled" };
const LARGE = 300, MARGIN = 100;
const NAMES = { succeeded: "done" };

export const nodeName = (state) => NAMES[state] ?? state;

export class Graph {
  constructor(svg) {
    this.nodes = new Map();
    this.edges = new Map();
    this.labels = new Map();
    this.known = new Map();
    if (!svg) return;
    for (const node of svg.querySelectorAll(".node")) {
      this.nodes.set(node.dataset.task, { box: node, use: node.querySelector(".state use"), text: node.querySelector(".state text"), tooltip: node.querySelector("title") });
    }
    this.large = this.nodes.size > LARGE;
    const come = (event) => {
      const found = this.nodes.get(event.target.closest?.(".node")?.dataset.task);
      if (this.large && found) this.tell(found);
    };
    svg.addEventListener("pointerover", come);
    svg.addEventListener("focusin", come);
    const edges = [...svg.querySelectorAll(".edge")], labels = [...svg.querySelectorAll(".label")];
    edges.forEach((edge, place) => {
      const key = `${edge.dataset.from}|${edge.dataset.to}`, box = labels[place];
      this.edges.set(key, edge);
      const ground = box?.querySelector("rect");
      for (const text of box?.querySelectorAll("text") ?? []) this.labels.set(`${key}|${text.textContent}`, { box, text, ground, trigger: text.textContent });
    });
    if (this.large) this.sight = new Sight(svg, [...this.nodes.values(), ...this.labels.values()], (come) => this.come(come));
  }

  // What is out of sight in a large graph is drawn when it comes into sight.
  come(parts) {
    for (const part of parts) if (part.box.dataset.task) this.draw(part);
    this.widen(parts.filter((part) => part.text && part.ground).map((part) => this.count(part)));
  }

  node(task, state, visits, failed = 0) {
    const found = this.nodes.get(task), name = nodeName(state);
    if (!found || this.known.get(task) === `${name}|${visits}|${failed}`) return;
    this.known.set(task, `${name}|${visits}|${failed}`);
    found.wanted = [name, visits, failed];
    if (!this.large || found.seen) this.draw(found);
  }

  draw(found) {
    const [name, visits, failed] = found.wanted;
    if (name) {
      found.box.dataset.state = name;
      found.use?.setAttribute("href", `#g-s-${name}`);
    } else {
      delete found.box.dataset.state;
      found.use?.removeAttribute("href");
    }
    const label = (LABELS[name] ?? "") + (visits > 1 ? ` ${visits}×` : "");
    if (found.text?.firstChild) found.text.firstChild.data = label;
    else if (found.text) found.text.textContent = label;
    found.label = (label || "not entered") + (failed && name === "done" ? `, ${failed} ${failed === 1 ? "step" : "steps"} failed first` : "");
    if (!this.large) this.tell(found);
  }

  // The title names a node, for hover and for screen readers alike; of a large graph when it is come to.
  tell(found) {
    if (!found.tooltip) return;
    found.words ??= found.tooltip.textContent;
    found.tooltip.textContent = `${found.words}\nstate: ${found.label ?? "not entered"}`;
  }

  // Words first, then all widths: measured one by one, each would lay out the drawing anew.
  taken(list) {
    const changed = [];
    for (const [from, signal, to, times, slips] of list) {
      const key = `${from}|${to}`, edge = this.edges.get(key), label = this.labels.get(`${key}|${signal}`);
      const way = slips ? "slipped" : "true";
      if (edge && edge.dataset.taken !== way) edge.dataset.taken = way;
      const title = slips && label ? edge?.querySelector("title") : null;
      if (title) title.textContent = `${title.textContent.split("\n")[0]}\n${slips} of ${times} after a step failed and went on`;
      if (!label) continue;
      label.wanted = [times, slips];
      if (!this.large || label.seen) changed.push(this.count(label));
    }
    this.widen(changed);
  }

  count(label) {
    const [times, slips] = label.wanted;
    label.text.textContent = `${label.trigger} ${times}×`;
    label.text.dataset.count = times;
    if (slips) label.text.dataset.slips = slips;
    return label;
  }

  // The ground of a label is as wide as its text; that is measured where the text has become longer.
  widen(labels) {
    const longer = labels.filter(({ text, ground, length = 0 }) => ground && text.textContent.length > length);
    const wide = longer.map(({ text }) => Math.ceil(text.getComputedTextLength()) + 8);
    longer.forEach((label, place) => {
      const { ground, text } = label, old = Number(ground.getAttribute("width"));
      label.length = text.textContent.length;
      if (wide[place] <= old) return;
      ground.setAttribute("x", Number(ground.getAttribute("x")) - (wide[place] - old) / 2);
      ground.setAttribute("width", wide[place]);
    });
  }
}

// Which parts of a large drawing are in sight. They do not move in it, so that each is measured once: an
// observer of a thousand parts measures them all in each frame.
class Sight {
  constructor(svg, parts, come) {
    Object.assign(this, { svg, parts, come, frame: svg.closest(".graph-scroll") ?? svg, width: 0, due: false });
    const look = () => {
      if (this.due) return;
      this.due = true;
      requestAnimationFrame(() => {
        this.due = false;
        this.look();
      });
    };
    addEventListener("scroll", look, { capture: true, passive: true });
    new ResizeObserver(look).observe(this.frame);
    addEventListener("resize", look);
  }

  look() {
    const at = this.svg.getBoundingClientRect(), view = this.frame.getBoundingClientRect();
    if (at.width && at.width !== this.width) this.measure(at);
    const left = view.left - at.left - MARGIN, right = view.right - at.left + MARGIN;
    const top = Math.max(view.top, 0) - at.top - MARGIN, bottom = Math.min(view.bottom, innerHeight) - at.top + MARGIN;
    const come = [];
    for (const part of this.parts) {
      const { place } = part, seen = this.width > 0 && place.x < right && place.x + place.width > left && place.y < bottom && place.y + place.height > top;
      if (seen && !part.seen && part.wanted) come.push(part);
      part.seen = seen;
    }
    this.come(come);
  }

  measure(at) {
    this.width = at.width;
    for (const part of this.parts) {
      const { x, y, width, height } = part.box.getBoundingClientRect();
      part.place = { x: x - at.left, y: y - at.top, width, height };
    }
  }
}
