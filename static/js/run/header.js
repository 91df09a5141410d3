// The head of a run's page: its state, its figures, and the question that it asks. All are fetched again
// together when the run changed; what somebody is typing, has opened or has in focus stays.

import { released } from "../press.js";
import { byId } from "./dom.js";
import { paced } from "./requests.js";

const EACH_MS = 700;
const PARTS = ["run-figures", "run-head", "run-ask"];

export class Header {
  constructor(requests, address, failed, renewed, asked) {
    this.renew = paced(() => this.fetch(requests, address, renewed, asked), () => EACH_MS, failed);
  }

  async fetch(requests, address, renewed, asked) {
    const html = await requests.text("head", address);
    const fresh = new DOMParser().parseFromString(html, "text/html");
    for (const part of PARTS) await released(byId(part));
    replaceFigures(fresh.getElementById("run-figures"), renewed);
    replaceHead(fresh.getElementById("run-head"));
    replaceQuestion(fresh.getElementById("run-ask"));
    asked();
  }
}

function replaceFigures(figures, renewed) {
  if (!figures || document.querySelector("#run-figures :focus")) return;
  byId("run-figures").replaceWith(figures);
  renewed();
}

function replaceHead(head) {
  const open = document.querySelector("#run-head details[open], dialog[open]");  // what is asked about stays
  if (!head || open) return;
  const named = (one) => one.getAttribute("aria-label") ?? one.textContent.trim();
  const focused = document.querySelector("#run-head :focus");
  byId("run-head").replaceWith(head);
  if (!focused) return;
  const same = [...head.querySelectorAll("a, button, summary")].find((one) => named(one) === named(focused));
  same?.focus({ preventScroll: true });
}

function replaceQuestion(ask) {
  const here = byId("run-ask"), fields = [...here.querySelectorAll("textarea")];
  if (!ask) return;
  if (ask.dataset.asks !== here.dataset.asks) {
    const typed = fields.filter((field) => field.value !== field.defaultValue).filter((field) => !carried(field, ask)).map((field) => field.value).join("\n\n");
    const focused = document.activeElement, again = here.contains(focused) && question(focused, ask);
    here.replaceWith(ask);
    if (again) refocus(again, focused);
    if (typed.trim()) keep(ask, typed);
  } else if (!here.contains(document.activeElement) && fields.every((field) => field.value === field.defaultValue) && !here.querySelector("[data-opened], .no-fit") && ask.innerHTML !== here.innerHTML) here.replaceWith(ask);
}

// The same field or button of the same question, of which a guarded session may have several.
function question(old, ask) {
  const of = old.form?.elements.of?.value;
  const form = [...ask.querySelectorAll("form")].find((one) => of && one.elements.of?.value === of && one.action === old.form.action);
  return form && [...form.elements].find((one) => one.name === old.name && one.value === (old.name === "text" ? one.value : old.value));
}

function carried(field, ask) {
  const same = question(field, ask);
  if (same) same.value = field.value;
  return Boolean(same);
}

function refocus(field, old) {
  field.focus({ preventScroll: true });
  if (field.name === "text") field.setSelectionRange(old.selectionStart, old.selectionEnd);
}

// What somebody typed while another answered, or the run went on: into the next question's field, or below it.
function keep(ask, typed) {
  const field = ask.querySelector("textarea[name=text]"), note = document.createElement("p");
  note.className = "message";
  note.setAttribute("role", "status");
  note.textContent = `The question changed while you typed. ${field ? "Read it again before you answer." : "What you typed is kept here."}`;
  if (field) {
    field.value = typed;
    field.form.prepend(note);
    return;
  }
  const kept = Object.assign(document.createElement("textarea"), { value: typed, readOnly: true, rows: 4, className: "mono" });
  kept.setAttribute("aria-label", "What you typed");
  const card = Object.assign(document.createElement("section"), { className: "card ask" });
  card.append(note, kept);
  ask.append(card);
}
