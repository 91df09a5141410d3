// The tasks of a run, in the graph and in the table below it: the state and the visits of each, and how often
// each edge was taken. Takes what the stream says of nodes and edges.

import { byId, span } from "./dom.js";
import { Graph } from "./graph.js";

export const WORDS = { queued: "Queued", running: "Running", waiting: "Waiting", paused: "Paused", succeeded: "Succeeded", unchecked: "Completed, unchecked", allowed: "Passed with warnings", failed: "Failed", refused: "Refused", cancelled: "Cancelled" };

export class Tasks {
  constructor(live, run) {
    this.graph = new Graph(document.querySelector("#run-graph svg"));
    this.table = byId("run-tasks");
    this.states = new Map();
    this.run = run;
    for (const [task, [state, visits]] of Object.entries(live.nodes)) {
      this.states.set(task, [state === "done" ? "succeeded" : state, visits]);
      this.graph.node(task, state, visits);
    }
    this.graph.taken(live.edges);
  }

  update(nodes, edges) {
    for (const [task, state, visits] of nodes) this.states.set(task, [state, visits]);
    for (const [task] of nodes) this.draw(task);
    this.graph.taken(edges);
  }

  // The run changed its state: so did what its open task shows.
  follow(run) {
    this.run = run;
    for (const task of this.states.keys()) this.draw(task);
  }

  draw(task) {
    const [state, visits] = this.states.get(task);
    const open = state === "running" || state === "waiting";  // while a worker runs it, a question is the backend's
    const shown = !open ? state : this.run.state === "running" ? "running" : task === this.run.task ? this.run.state : "";
    this.graph.node(task, shown, visits);
    this.row(task, shown, visits);
  }

  row(task, state, visits) {
    if (!this.table?.closest("details").open) return;
    const line = this.table.querySelector(`tr[data-task="${CSS.escape(task)}"]`);
    if (!line) return;
    line.querySelector(".num").textContent = visits;
    const cell = line.querySelector(".task-state"), word = WORDS[state] ?? "Not entered";
    if (cell.textContent.trim() !== word) cell.replaceChildren(span(`pill ${state}`, word));
  }
}
