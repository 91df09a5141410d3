// The tasks of a run, in the graph and in the table below it: the state, the visits, the tokens and the cost of
// each, and how often each edge was taken. Takes what the stream says of nodes and edges.

import { byId, span } from "./dom.js";
import { Graph } from "./graph.js";

export const WORDS = { queued: "Queued", running: "Running", waiting: "Waiting", paused: "Paused", succeeded: "Succeeded", unchecked: "Completed, unchecked", "own-tests": "Succeeded, by its own tests", allowed: "A step failed", failed: "Failed", refused: "Refused", cancelled: "Cancelled" };

// Tokens and what they cost, in the words of the server; cost in billionths of a dollar.
function spent(tokens, cost) {
  const dollars = cost / 1e9, said = tokens.toLocaleString("en-US");
  if (!cost) return said;
  if (dollars >= 0.1) return `${said} · $${dollars.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  return `${said} · $${dollars >= 0.001 ? dollars.toFixed(4) : dollars.toFixed(9).replace(/0+$/, "")}`;
}

export class Tasks {
  constructor(live, run) {
    this.graph = new Graph(document.querySelector("#run-graph svg"));
    this.table = byId("run-tasks");
    this.states = new Map();
    this.run = run;
    for (const [task, [state, visits, tokens, cost, failed]] of Object.entries(live.nodes)) {
      this.states.set(task, [state === "done" ? "succeeded" : state, visits, tokens, cost, failed]);
      this.graph.node(task, state, visits, failed);
    }
    this.graph.taken(live.edges);
  }

  update(nodes, edges) {
    for (const [task, ...found] of nodes) this.states.set(task, found);
    for (const [task] of nodes) this.draw(task);
    this.graph.taken(edges);
  }

  // The run changed its state: so did what its open task shows.
  follow(run) {
    this.run = run;
    for (const task of this.states.keys()) this.draw(task);
  }

  draw(task) {
    const [state, visits, tokens, cost, failed] = this.states.get(task);
    const open = state === "running" || state === "waiting";  // while a worker runs it, a question is the backend's
    const shown = !open ? state : this.run.state === "running" ? "running" : task === this.run.task ? this.run.state : "";
    this.graph.node(task, shown, visits, failed);
    this.row(task, shown, visits, spent(tokens, cost));
  }

  row(task, state, visits, used) {
    if (!this.table?.closest("details").open) return;
    const line = this.table.querySelector(`tr[data-task="${CSS.escape(task)}"]`);
    if (!line) return;
    line.querySelector(".num").textContent = visits;
    line.querySelector(".spent").textContent = used;
    const cell = line.querySelector(".task-state"), word = WORDS[state] ?? "Not entered";
    if (cell.textContent.trim() !== word) cell.replaceChildren(span(`pill ${state}`, word));
  }
}
