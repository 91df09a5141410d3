// The graph as a list, and the selected task as a form: whatever the picture lets a person do, these do too.

import { el, find, icon } from "./dom.js";

export class Outline {
  constructor(place, on) {
    this.place = place;
    this.on = on;
    this.rows = new Map(); // By name of the task: its row, and all that it was made from.
    this.list = null;
    this.selected = "";
    this.seen = null;
    this.frame = null;
    place.addEventListener("keydown", (event) => this.key(event));
  }

  show(graph, problems) {
    const focused = this.place.contains(document.activeElement) ? document.activeElement.dataset.task : null;
    const edges = new Map();
    for (const { from, trigger, to } of graph?.edges ?? []) {
      if (!edges.has(from)) edges.set(from, []);
      edges.get(from).push({ trigger, to });
    }
    const before = this.rows;
    this.rows = new Map((graph?.nodes ?? []).map((node) => {
      const about = [node, problems.get(node.id), edges.get(node.id) ?? []];
      const key = JSON.stringify([node.kind, node.start, node.terminal, node.file, ...about.slice(1)]);
      const row = before.get(node.id);
      return [node.id, row?.key === key ? row : { key, item: this.row(...about) }];
    }));
    const items = [...this.rows.values()].map((row) => row.item);
    if (!items.length) {
      this.list = null;
      this.place.replaceChildren(el("p", { class: "empty" }, "No task yet. Add one with “+ Task”, or type TASK in the text."));
      return;
    }
    if (!this.list) this.place.replaceChildren((this.list = el("ul", { class: "tasks" })));
    for (const [name, { item }] of before) if (this.rows.get(name)?.item !== item) item.remove();
    let at = this.list.firstElementChild;
    for (const item of items) {
      if (item === at) at = at.nextElementSibling;
      else this.list.insertBefore(item, at);
    }
    this.select(this.selected);
    if (focused) this.button(focused)?.focus();
  }

  row(node, problem, ways) {
    const words = [node.start ? "start" : "", node.terminal ? "end" : "", node.kind === "missing" ? "missing" : "", node.file ? `from ${node.file}` : ""].filter(Boolean).join(", ");
    const button = el(
      "button",
      { type: "button", "data-task": node.id, class: `task ${node.kind}`, tabindex: "-1", "aria-current": "false", onclick: () => this.on.select(node.id), ondblclick: () => this.on.open(node.id) },
      el("span", { class: "name" }, node.id),
      words ? el("span", { class: "tag" }, words) : null,
      problem ? el("span", { class: `sign ${problem.severity}`, title: problem.text }, icon(problem.severity), el("span", { class: "hidden" }, problem.text)) : null,
    );
    return el("li", {}, button, ways.length ? el("ul", {}, ways.map((edge) => el("li", { class: "way" }, el("span", { class: `trigger t-${edge.trigger}` }, edge.trigger), " → ", edge.to))) : null);
  }

  button(name) {
    return find("button.task", this.rows.get(name)?.item ?? document.createElement("i"));
  }

  select(name) {
    this.selected = name;
    const chosen = this.button(name);
    for (const button of this.place.querySelectorAll('button.task[tabindex="0"]')) {
      button.tabIndex = -1;
      button.setAttribute("aria-current", "false");
    }
    const first = chosen ?? find("button.task", this.place);
    if (first) first.tabIndex = 0;
    chosen?.setAttribute("aria-current", "true");
    if (chosen && chosen !== this.seen) this.frame ??= requestAnimationFrame(() => this.reveal());
    this.seen = chosen;
  }

  // Once before the next picture: to ask where things are in the middle of a change lays out all of them twice.
  reveal() {
    this.frame = null;
    const chosen = this.button(this.selected);
    if (!chosen || !this.place.offsetParent) return;
    const [box, inside] = [this.place.getBoundingClientRect(), chosen.getBoundingClientRect()];
    if (inside.top < box.top || inside.bottom > box.bottom) this.place.scrollTop += inside.top - box.top - box.height / 3;
  }

  key(event) {
    const buttons = [...this.place.querySelectorAll("button.task")];
    const at = buttons.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (next !== undefined && buttons[next]) {
      event.preventDefault();
      buttons[next].focus();
      this.on.select(buttons[next].dataset.task, true);
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      this.on.open(buttons[at].dataset.task);
    } else if ((event.key === "Delete" || event.key === "F2") && at >= 0) {
      event.preventDefault();
      this.on[event.key === "F2" ? "rename" : "remove"](buttons[at].dataset.task);
    }
  }
}

export class Properties {
  constructor(place, on) {
    this.place = place;
    this.on = on;
    this.shown = "";
  }

  show(name, graph, triggers) {
    const node = graph?.nodes.find((item) => item.id === name);
    const edges = (graph?.edges ?? []).filter((edge) => edge.from === name);
    const targets = (graph?.nodes ?? []).map((item) => item.id);
    const key = JSON.stringify([node && [node.id, node.kind, node.start, node.goal, node.tools, node.validator, node.file], edges, targets]);
    if (key === this.shown || this.place.contains(document.activeElement) && document.activeElement.matches("textarea") && this.name === name && node) {
      return;
    }
    const active = this.place.contains(document.activeElement) ? document.activeElement.name : "";
    this.shown = key;
    this.name = name;
    if (!node) {
      this.place.replaceChildren(el("p", { class: "empty" }, "Select a task in the graph or in the outline to see and change it here."));
      return;
    }
    this.place.replaceChildren(...(node.kind === "missing" ? this.missing(node) : this.task(node, edges, targets, triggers)));
    if (active) find(`[name="${CSS.escape(active)}"]`, this.place)?.focus();
  }

  missing(node) {
    return [
      el("h3", {}, node.id),
      el("p", {}, "An edge leads here, and there is no such task."),
      this.on.editable && !node.file ? el("button", { type: "button", class: "button primary", name: "create", onclick: () => this.on.create(node.id) }, "Create task") : null,
    ].filter(Boolean);
  }

  task(node, edges, targets, triggers) {
    const { on } = this;
    const off = !on.editable || Boolean(node.file);
    const goal = el("textarea", { id: "property-goal", name: "goal", rows: "2", disabled: off });
    goal.value = node.goal;
    goal.addEventListener("change", () => {
      if (goal.value.trim() !== node.goal) on.goal(node.id, goal.value.trim());
    });
    const select = (name, options, value, label) => {
      const known = options.includes(value) ? options : [value, ...options];
      const made = el("select", { name, "aria-label": label, disabled: off }, known.map((option) => el("option", { value: option }, option)));
      made.value = value;
      return made;
    };
    const rows = edges.map((edge, index) => {
      const trigger = select(`trigger-${index}`, triggers, edge.trigger, `Trigger of edge ${index + 1}`);
      const target = select(`target-${index}`, targets, edge.to, `Target of ${edge.trigger}`);
      trigger.addEventListener("change", () => on.edit([{ op: "rename_trigger", task: node.id, trigger: edge.trigger, new: trigger.value }], () => this.again()));
      target.addEventListener("change", () => on.edit([{ op: "retarget_edge", task: node.id, trigger: edge.trigger, target: target.value }], () => this.again()));
      const remove = off
        ? null
        : el("button", { type: "button", class: "icon-button", name: `remove-${index}`, "aria-label": `Remove edge ${edge.trigger}`, onclick: () => on.edit([{ op: "remove_edge", task: node.id, trigger: edge.trigger }]) }, icon("trash"));
      return el("li", {}, trigger, el("span", { "aria-hidden": "true" }, "→"), target, remove);
    });
    return [
      el(
        "div",
        { class: "head" },
        el("h3", {}, node.id),
        node.start ? el("span", { class: "tag" }, "start") : null,
        node.terminal ? el("span", { class: "tag" }, "end") : null,
        off
          ? null
          : el(
              "span",
              { class: "acts" },
              el("button", { type: "button", class: "button small", name: "rename", onclick: () => on.rename(node.id) }, "Rename"),
              node.start ? null : el("button", { type: "button", class: "button small", name: "start", onclick: () => on.start(node.id) }, "Start here"),
              el("button", { type: "button", class: "button small", name: "remove", onclick: () => on.remove(node.id) }, "Delete"),
            ),
      ),
      el("label", { for: "property-goal" }, "Goal"),
      goal,
      el("h4", {}, "Edges"),
      rows.length ? el("ul", { class: "edges" }, rows) : el("p", { class: "empty" }, "None: the run ends after this task."),
      off ? null : el("button", { type: "button", class: "button small", name: "connect", onclick: () => on.connect(node.id, null) }, "Add edge"),
      el("dl", {}, ...this.facts(node)),
    ].filter(Boolean);
  }

  facts(node) {
    const rows = [
      ["Imported", node.file ? `from ${node.file}: it is changed there` : ""],
      ...(node.file
        ? [
            ["Steps", node.steps || ""],
            ["Tools", node.tools.join(", ")],
            ["Validator", node.validator],
            ["Proposer", node.proposer],
          ]
        : []),
    ];
    return rows.filter(([, value]) => value).flatMap(([word, value]) => [el("dt", {}, word), el("dd", {}, String(value))]);
  }

  again() {
    this.shown = "";
  }
}
