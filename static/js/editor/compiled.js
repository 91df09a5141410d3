// The "Compiled" tab: what the kernel makes of the text, and a step tried by hand.

import { el, find } from "./dom.js";
import { ask, sentence } from "./server.js";

export class Compiled {
  // `mend` leads to the first mistake of the text.
  constructor(place, config, text, mend) {
    Object.assign(this, { place, config, text, mend, asked: null, shown: null, answers: [] });
  }

  async show() {
    const text = this.text();
    if (this.asked === text) return; // It is shown, or on its way.
    this.asked = text;
    this.place.replaceChildren(el("p", { class: "empty", role: "status" }, "Compiling…"));
    let found;
    try {
      found = await ask(this.config.urls.compiled, { text });
    } catch (error) {
      if (this.asked !== text) return;
      this.asked = null;
      const way = error.code === "lang.invalid" ? el("button", { type: "button", class: "button primary", onclick: this.mend }, "Show me where") : el("button", { type: "button", class: "button", onclick: () => this.show() }, "Try again");
      this.place.replaceChildren(el("div", { class: "nothing", role: "alert" }, el("h3", {}, "It does not compile yet"), el("p", {}, sentence(error)), way));
      return;
    }
    if (this.asked !== text) return;
    this.shown = text;
    this.answers = [];
    this.place.replaceChildren(
      el("section", { class: "compiled-words", "aria-label": "In words" }, ...this.words(found)),
      this.part("Try a step", true, el("div", { id: "try-step" }, el("p", {}, "Walk through the spec by hand: the kernel says what it would do, you say what came of it. Nothing is run."), el("button", { type: "button", class: "button", onclick: () => this.step() }, "Begin"))),
      this.part(`Prompts (${found.prompts.length})`, false, ...found.prompts.map((prompt) => this.prompt(prompt)), found.prompts.length ? null : el("p", { class: "empty" }, "No step of this spec asks a model.")),
      this.part("Policy", false, el("p", {}, found.policy.said), el("pre", { tabindex: "0" }, found.policy.text)),
      this.part("Program (JSON)", false, el("pre", { tabindex: "0" }, JSON.stringify(found.program, null, 2))),
    );
  }

  part(title, open, ...children) {
    return el("details", { open }, el("summary", {}, title), ...children);
  }

  words(found) {
    const rows = found.facts.flatMap(({ word, value }) => [el("dt", {}, word), el("dd", {}, value)]);
    const abilities = found.capabilities.map((item) => el("tr", {}, el("td", {}, item.kind), el("td", {}, el("code", {}, item.name)), el("td", {}, item.where), el("td", {}, item.value)));
    const head = el("thead", {}, el("tr", {}, ["Kind", "What", "Where", "Value"].map((word) => el("th", { scope: "col" }, word))));
    return [el("dl", {}, rows), el("h3", {}, "What it may do, and what it is held to"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Capabilities" }, el("table", {}, head, el("tbody", {}, abilities)))];
  }

  prompt(prompt) {
    const items = prompt.items.map((item) => el("li", {}, el("span", { class: "tag" }, `${item.role} · ${item.name}`), el("pre", { tabindex: "0" }, item.text)));
    return el("section", { class: "prompt" }, el("h4", {}, `${prompt.task} · ${prompt.step}`), el("ol", {}, items));
  }

  // ---- try a step

  async step(answer = null) {
    const place = find("#try-step", this.place);
    const answers = answer === null ? [] : [...this.answers, answer];
    let found;
    try {
      found = await ask(this.config.urls.try, { text: this.shown, answers });
    } catch (error) {
      find(".problem", place)?.remove();
      place.append(el("p", { class: "problem", role: "alert" }, sentence(error)));
      return;
    }
    this.answers = answers;
    const records = found.records.map((record) =>
      el("li", { class: record.authority }, el("span", { class: "tag" }, record.kind), " ", el("span", {}, [record.task, record.step].filter(Boolean).join(" · ")), " ", el("span", { class: "said" }, record.said)),
    );
    place.replaceChildren(el("ol", { class: "records" }, records), found.effect ? this.effect(found) : el("p", { role: "status" }, `The run would end: ${found.status}${found.why ? ` (${found.why})` : ""}.`), el("button", { type: "button", class: "button small", onclick: () => this.step() }, "Begin again"));
  }

  effect(found) {
    const { effect } = found;
    const area = el("textarea", { id: "try-answer", rows: "5", spellcheck: "false" });
    area.value = effect.suggestion;
    const send = (event) => {
      event.preventDefault();
      this.step({ outcome: find("#try-outcome", this.place)?.value ?? "answered", value: area.value });
    };
    return el(
      "form",
      { class: "effect", onsubmit: send },
      el("h4", {}, effect.title),
      effect.items.length ? el("ol", {}, effect.items.map((item) => el("li", {}, el("span", { class: "tag" }, `${item.role} · ${item.name}`), el("pre", { tabindex: "0" }, item.text)))) : el("pre", { tabindex: "0" }, JSON.stringify(effect.args, null, 2)),
      effect.outcomes.length ? el("div", { class: "field" }, el("label", { for: "try-outcome" }, "It ends"), el("select", { id: "try-outcome" }, effect.outcomes.map(({ value, label }) => el("option", { value }, label)))) : null,
      el("div", { class: "field" }, el("label", { for: "try-answer" }, effect.label), area),
      el("button", { type: "submit", class: "button primary" }, "Go on"),
    );
  }
}
