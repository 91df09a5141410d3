// The graph of a run: states of its nodes, how often each edge was taken. Takes [task, state, visits] and
// [from, signal, to, times, slips]; changes attributes of the drawing that the server made, and no place in it.

const LABELS = { queued: "queued", running: "running", waiting: "waiting", paused: "paused", done: "succeeded", allowed: "last step failed", failed: "failed", refused: "refused", cancelled: "cancelled" };
const LARGE = 300;
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
    if (this.large) {  // what is out of sight is drawn when it comes into sight
      const sight = new IntersectionObserver((entries) => {
        for (const entry of entries) {
          const found = this.nodes.get(entry.target.dataset.task);
          found.seen = entry.isIntersecting;
          if (found.seen && found.wanted) this.draw(found);
        }
      }, { rootMargin: "100px" });
      for (const { box } of this.nodes.values()) sight.observe(box);
    }
    const edges = [...svg.querySelectorAll(".edge")], labels = [...svg.querySelectorAll(".label")];
    edges.forEach((edge, place) => {
      const key = `${edge.dataset.from}|${edge.dataset.to}`;
      this.edges.set(key, edge);
      const ground = labels[place]?.querySelector("rect");
      for (const text of labels[place]?.querySelectorAll("text") ?? []) this.labels.set(`${key}|${text.textContent}`, { text, ground, trigger: text.textContent });
    });
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
      if (edge) edge.dataset.taken = slips ? "slipped" : "true";
      if (!label) continue;
      label.text.textContent = `${label.trigger} ${times}×`;
      label.text.dataset.count = times;
      if (slips) label.text.dataset.slips = slips;
      const title = edge?.querySelector("title");
      if (slips && title) title.textContent = `${title.textContent.split("\n")[0]}\n${slips} of ${times} after a step failed and went on`;
      if (label.ground) changed.push(label);
    }
    const wide = changed.map(({ text }) => Math.ceil(text.getComputedTextLength()) + 8);
    changed.forEach(({ ground }, place) => {
      const old = Number(ground.getAttribute("width"));
      if (wide[place] <= old) return;
      ground.setAttribute("x", Number(ground.getAttribute("x")) - (wide[place] - old) / 2);
      ground.setAttribute("width", wide[place]);
    });
  }
}
