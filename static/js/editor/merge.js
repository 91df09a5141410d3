// The page that merges: theirs beside the result, and each conflict with what may be kept of it.
// Without this script the text area with marks does the same.

import { defaultKeymap, EditorView, history, historyKeymap, keymap } from "../../vendor/codemirror.js";
import { MergeView } from "../../vendor/codemirror-merge.js";
import { fetched, looks } from "./compare.js";
import { el, find } from "./dom.js";

const CONFLICT = /^<<<<<<< yours\n([\s\S]*?)^=======\n([\s\S]*?)^>>>>>>> theirs\n?/gm;

function conflicts(text) {
  return [...text.matchAll(CONFLICT)].map((match) => ({ from: match.index, to: match.index + match[0].length, mine: match[1], theirs: match[2] }));
}

async function begin(form) {
  const area = find("textarea[name=text]", form);
  const { head, headName, nonce } = form.dataset;
  const theirs = await fetched(head);
  const holder = el("div", { class: "merge-editor", id: "merge-editor" });
  const list = el("ol", { class: "conflicts" });
  const said = el("p", { role: "status", class: "conflicts-said" });
  const label = area.closest("label");
  label.before(said, list, holder);
  label.hidden = true;
  const button = find("button.primary, button[type=submit]", form);
  const show = () => {
    const text = view.b.state.doc.toString();
    const found = conflicts(text);
    area.value = text;
    button.disabled = found.length > 0;
    said.textContent = found.length ? `${found.length} conflict${found.length === 1 ? "" : "s"} to resolve:` : "No conflicts left. Review the result and save it.";
    list.replaceChildren(
      ...found.map(({ from, to, mine, theirs: other }, index) => {
        const keep = (words, insert) =>
          el("button", { type: "button", class: "button", "aria-label": `${words}, place ${index + 1}`, onclick: () => view.b.dispatch({ changes: { from, to, insert }, selection: { anchor: from }, scrollIntoView: true }) }, words);
        return el(
          "li",
          {},
          el("div", { class: "choice" }, el("b", {}, "Yours"), el("pre", { tabindex: "0" }, mine || "(nothing)")),
          el("div", { class: "choice" }, el("b", {}, headName), el("pre", { tabindex: "0" }, other || "(nothing)")),
          el("div", { class: "choices" }, keep("Keep yours", mine), keep("Keep theirs", other), keep("Keep both", mine + other)),
        );
      }),
    );
  };
  const view = new MergeView({
    a: { doc: theirs, extensions: [looks(nonce, headName), EditorView.editable.of(false)] },
    b: {
      doc: area.value.replaceAll("\r\n", "\n"),
      extensions: [looks(nonce, "The result, which can be changed"), history(), keymap.of([...historyKeymap, ...defaultKeymap]), EditorView.updateListener.of((update) => update.docChanged && show())],
    },
    parent: holder,
    collapseUnchanged: { margin: 4, minSize: 8 },
    gutter: true,
  });
  show();
  form.dataset.ready = "true";
}

const form = find(".merge-form");
if (form) begin(form).catch(() => {}); // The text area is there already.
