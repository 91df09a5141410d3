// The graph pane: the server's drawing with pan, zoom, selection, and edges drawn from a port.
//
// The drawing is only a picture of the text. What a person does here is handed on as a wish (`on.connect`,
// `on.create`, ...); the page turns it into an operation, the server into a change of the text.

import { draw, Drawing } from "./drawing.js";

const LEAST = 0.05;
const MOST = 4;
const FIT = 1.25;

export class GraphPane {
  constructor(place, on) {
    this.place = place;
    this.on = on;
    this.drawing = new Drawing();
    this.source = "";
    this.graph = null;
    this.nodes = new Map();
    this.boxes = new Map();
    this.selected = "";
    this.looked = false; // Whether the person chose a view; until then each drawing is fitted.
    this.view = { x: 0, y: 0, scale: 1 };
    this.drag = null;
    place.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    place.addEventListener("pointerdown", (event) => this.down(event));
    place.addEventListener("pointermove", (event) => this.move(event));
    place.addEventListener("pointerup", (event) => this.up(event));
    place.addEventListener("pointercancel", () => this.drop());
    place.addEventListener("pointerover", (event) => this.over(event));
    place.addEventListener("dblclick", (event) => this.double(event));
    place.addEventListener("keydown", (event) => this.key(event));
    place.addEventListener("focusin", (event) => {
      const name = event.target.closest?.("[data-task]")?.dataset.task;
      if (name && name !== this.selected) this.select(name);
    });
    new ResizeObserver(() => {
      this.room = null;
      if (this.looked) this.frame();
      else this.fit();
    }).observe(place);
  }

  get svg() {
    return this.drawing.svg;
  }

  // ---- drawing

  show(source, graph) {
    if (source === this.source) return;
    const focused = this.place.contains(document.activeElement) ? document.activeElement.closest?.("[data-task]")?.dataset.task : null;
    this.source = source;
    this.graph = graph;
    this.boxes = new Map(graph.nodes.map((node) => [node.id, node]));
    this.svg?.querySelectorAll(".create").forEach((node) => node.remove());
    let changed = this.drawing.show(source);
    if (!changed && this.svg) {
      // Not to be had by changing the last one.
      this.svg.remove();
      this.drawing = new Drawing();
      changed = this.drawing.show(source);
    }
    this.nodes.clear();
    const { svg } = this;
    if (!svg) return;
    svg.removeAttribute("width");
    svg.removeAttribute("height");
    for (const part of changed.fresh) {
      if (part.matches("[data-task]")) part.setAttribute("tabindex", "-1");
      else if (part.matches("g.edge")) part.prepend(draw("path", { class: "hit", d: part.querySelector(".line").getAttribute("d") }));
    }
    for (const part of changed.moved) if (part.classList.contains("edge")) part.querySelector(".hit").setAttribute("d", part.querySelector(".line").getAttribute("d"));
    for (const node of svg.querySelectorAll("g.node")) {
      this.nodes.set(node.dataset.task, node);
      if (node.classList.contains("missing") && !this.boxes.get(node.dataset.task).file && this.on.editable) this.ghost(node);
    }
    this.port ??= draw("g", { class: "port" }, draw("title", {}, document.createTextNode("Drag to another task to connect; key: C")), draw("circle", { r: 7 }), draw("path", { d: "M-3 0h6M0 -3v6" }));
    if (!svg.parentNode) this.place.prepend(svg);
    if (!this.nodes.has(this.selected)) this.selected = "";
    this.mark();
    if (this.looked) this.frame();
    else this.fit();
    if (focused) (this.nodes.get(this.renamed?.[focused] ?? focused) ?? this.nodes.get(this.selected))?.focus({ preventScroll: true });
    this.renamed = null;
  }

  ghost(node) {
    const { id, x, y, width, height } = this.boxes.get(node.dataset.task);
    const wide = 88;
    const button = draw(
      "g",
      { class: "create", "data-create": id, "aria-hidden": "true", transform: `translate(${x + (width - wide) / 2} ${y + height - 4})` },
      draw("rect", { width: wide, height: 20, rx: 10 }),
      draw("text", { x: wide / 2, y: 14, "text-anchor": "middle" }, document.createTextNode("create task")),
    );
    this.svg.append(button);
  }

  // ---- problems: a sign at the corner of a task

  problems(found) {
    this.svg?.querySelectorAll(".sign").forEach((sign) => sign.remove());
    for (const [name, { severity, text }] of found) {
      const node = this.nodes.get(name);
      const box = this.boxes.get(name);
      if (!node || !box) continue;
      node.append(
        draw("g", { class: `sign ${severity}`, transform: `translate(${box.width - 2} 2)` }, draw("title", {}, document.createTextNode(text)), draw("circle", { r: 8 }), draw("path", { d: "M0 -4v4.5M0 3.4v.1" })),
      );
    }
  }

  // ---- selection

  select(name, { reveal = false, focus = false, tell = true } = {}) {
    if (name && !this.nodes.has(name)) return;
    const changed = name !== this.selected;
    this.selected = name;
    this.mark();
    if (reveal && name) this.reveal(name);
    if (focus && name) this.nodes.get(name).focus({ preventScroll: true });
    if (changed && tell) this.on.select(name);
  }

  mark() {
    for (const node of this.svg?.querySelectorAll("[aria-current]") ?? []) node.removeAttribute("aria-current");
    for (const node of this.svg?.querySelectorAll('g.node[tabindex="0"]') ?? []) node.setAttribute("tabindex", "-1");
    this.nodes.get(this.selected || this.first)?.setAttribute("tabindex", "0");
    const node = this.nodes.get(this.selected);
    node?.setAttribute("aria-current", "true");
    this.offer(this.selected);
    for (const edge of this.svg?.querySelectorAll("g.edge") ?? [])
      edge.classList.toggle("near", Boolean(this.selected) && (edge.dataset.from === this.selected || edge.dataset.to === this.selected));
  }

  get first() {
    return this.graph?.start ?? this.graph?.nodes[0]?.id ?? "";
  }

  // The port stands below the task that the pointer is on, else below the selected one.
  offer(name) {
    if (!this.on.editable || !this.port) return;
    const node = this.nodes.get(name);
    const box = this.boxes.get(name);
    if (!node || !box || box.kind === "missing" || box.file) {
      this.port.remove();
      return;
    }
    this.port.setAttribute("transform", `translate(${box.width / 2} ${box.height})`);
    if (this.port.parentNode !== node) node.append(this.port);
  }

  // ---- view

  get size() {
    this.room ??= { width: this.place.clientWidth || 1, height: this.place.clientHeight || 1 };
    return this.room;
  }

  frame() {
    if (!this.svg) return;
    const { width, height } = this.size;
    const { x, y, scale } = this.view;
    this.svg.setAttribute("viewBox", `${x} ${y} ${width / scale} ${height / scale}`);
    this.on.zoomed(scale);
  }

  fit() {
    if (!this.graph) return;
    const { width, height } = this.size;
    const scale = Math.max(LEAST, Math.min(FIT, width / (this.graph.width + 16), height / (this.graph.height + 16)));
    this.view = { scale, x: (this.graph.width - width / scale) / 2, y: (this.graph.height - height / scale) / 2 };
    this.looked = false;
    this.frame();
  }

  zoom(factor, at = { x: this.size.width / 2, y: this.size.height / 2 }) {
    const { x, y, scale } = this.view;
    const next = Math.max(LEAST, Math.min(MOST, scale * factor));
    this.view = { scale: next, x: x + at.x / scale - at.x / next, y: y + at.y / scale - at.y / next };
    this.looked = true;
    this.frame();
  }

  pan(dx, dy) {
    this.view.x += dx / this.view.scale;
    this.view.y += dy / this.view.scale;
    this.looked = true;
    this.frame();
  }

  reveal(name) {
    const box = this.boxes.get(name);
    if (!box) return;
    const { width, height } = this.size;
    const { x, y, scale } = this.view;
    const inside = box.x >= x && box.y >= y && box.x + box.width <= x + width / scale && box.y + box.height <= y + height / scale;
    if (inside && scale > 0.3) return;
    if (scale <= 0.3) this.view.scale = Math.min(1, width / (box.width * 3));
    this.view.x = box.x + box.width / 2 - width / this.view.scale / 2;
    this.view.y = box.y + box.height / 2 - height / this.view.scale / 2;
    this.looked = true;
    this.frame();
  }

  point(event) {
    const bounds = this.place.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  }

  inside({ x, y }) {
    return { x: this.view.x + x / this.view.scale, y: this.view.y + y / this.view.scale };
  }

  // ---- pointer

  wheel(event) {
    event.preventDefault();
    if (event.shiftKey) this.pan(event.deltaY || event.deltaX, 0);
    else this.zoom(Math.exp(-Math.max(-200, Math.min(200, event.deltaY * (event.deltaMode ? 20 : 1))) / 400), this.point(event));
  }

  over(event) {
    if (this.drag) return;
    const name = event.target.closest?.("[data-task]")?.dataset.task;
    if (name) this.offer(name);
    else if (event.target === this.svg || event.target.classList?.contains("bg")) this.offer(this.selected);
  }

  down(event) {
    if (event.button !== 0 || !this.svg?.contains(event.target)) return;
    const at = this.point(event);
    const node = event.target.closest("[data-task]");
    const kind = event.target.closest(".port") ? "connect" : event.target.closest(".create") ? "create" : node ? "node" : event.target.closest("g.edge") ? "edge" : "pan";
    this.drag = { kind, name: node?.dataset.task ?? event.target.closest(".create")?.dataset.create ?? "", edge: event.target.closest("g.edge"), from: at, at, moved: false };
    this.place.setPointerCapture(event.pointerId);
    event.preventDefault();
    if (kind === "connect") {
      const box = this.boxes.get(this.drag.name);
      this.drag.start = { x: box.x + box.width / 2, y: box.y + box.height };
      this.drag.line = draw("path", { class: "rubber" });
      this.svg.append(this.drag.line);
    } else if (node) node.focus({ preventScroll: true });
    else this.place.focus({ preventScroll: true });
  }

  move(event) {
    const { drag } = this;
    if (!drag) return;
    const at = this.point(event);
    if (Math.hypot(at.x - drag.from.x, at.y - drag.from.y) > 4) drag.moved = true;
    if (drag.kind === "connect") {
      const end = this.inside(at);
      const { start } = drag;
      const bend = Math.max(24, Math.abs(end.y - start.y) / 2);
      drag.line.setAttribute("d", `M${start.x} ${start.y}C${start.x} ${start.y + bend} ${end.x} ${end.y - bend} ${end.x} ${end.y}`);
      this.target(this.under(event));
    } else if (drag.moved && (drag.kind === "pan" || drag.kind === "node" || drag.kind === "edge")) {
      this.place.classList.add("panning");
      this.pan(drag.at.x - at.x, drag.at.y - at.y);
    }
    drag.at = at;
  }

  under(event) {
    return document.elementsFromPoint(event.clientX, event.clientY).map((node) => node.closest?.("[data-task]")?.dataset.task).find((name) => name && this.nodes.has(name)) ?? "";
  }

  target(name) {
    for (const node of this.svg.querySelectorAll(".target")) node.classList.remove("target");
    this.nodes.get(name)?.classList.add("target");
  }

  up(event) {
    const { drag } = this;
    if (!drag) return;
    const target = drag.kind === "connect" ? this.under(event) : "";
    this.drop();
    if (drag.kind === "connect") {
      if (drag.moved) this.on.connect(drag.name, target);
      else this.on.connect(drag.name, null);
    } else if (drag.moved) return;
    else if (drag.kind === "create") this.on.create(drag.name);
    else if (drag.kind === "node") {
      this.select(drag.name);
      this.on.open(drag.name, false);
    } else if (drag.kind === "edge") this.on.edge(drag.edge.dataset.from, drag.edge.dataset.to, Number(drag.edge.dataset.line));
    else this.select("");
  }

  drop() {
    this.drag?.line?.remove();
    this.drag = null;
    this.place.classList.remove("panning");
    if (this.svg) this.target("");
  }

  double(event) {
    const name = event.target.closest?.("[data-task]")?.dataset.task;
    if (name) this.on.open(name, true);
    else if (this.svg?.contains(event.target)) this.on.add("");
  }

  // ---- keys

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const name = event.target.closest?.("[data-task]")?.dataset.task ?? "";
    const editable = this.on.editable;
    const acts = {
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      0: () => this.fit(),
      f: () => this.fit(),
      ArrowUp: () => this.step(name, 0, -1),
      ArrowDown: () => this.step(name, 0, 1),
      ArrowLeft: () => this.step(name, -1, 0),
      ArrowRight: () => this.step(name, 1, 0),
      Escape: () => (this.drag ? this.drop() : (this.select(""), this.place.focus())),
      ...(name ? { Enter: () => this.on.open(name, true), " ": () => this.on.open(name, false) } : {}),
      ...(name && editable && !this.boxes.get(name)?.file
        ? this.boxes.get(name)?.kind === "missing"
          ? { a: () => this.on.create(name), Enter: () => this.on.create(name) }
          : { c: () => this.on.connect(name, null), r: () => this.on.rename(name), F2: () => this.on.rename(name), Delete: () => this.on.remove(name), Backspace: () => this.on.remove(name), s: () => this.on.start(name) }
        : {}),
      ...(editable ? { n: () => this.on.add(name) } : {}),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  // To the nearest task in a direction; without a task, or past the last one, the picture moves.
  step(name, dx, dy) {
    const from = this.boxes.get(name);
    if (!from) return this.pan(dx * 60, dy * 60);
    const middle = (box) => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 });
    const here = middle(from);
    let best = null;
    let least = Infinity;
    for (const box of this.boxes.values()) {
      const there = middle(box);
      const along = (there.x - here.x) * dx + (there.y - here.y) * dy;
      const aside = Math.abs((there.x - here.x) * dy) + Math.abs((there.y - here.y) * dx);
      if (along < 8 || aside > along * 4) continue;
      if (along + aside * 2 < least) [best, least] = [box, along + aside * 2];
    }
    if (best) this.select(best.id, { reveal: true, focus: true });
    return best;
  }
}
