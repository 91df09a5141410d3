// Two versions side by side: CodeMirror's view in place of the table, which stays for whoever wants it.

import { classHighlighter, EditorState, EditorView, lineNumbers, syntaxHighlighting } from "../../vendor/codemirror.js";
import { MergeView } from "../../vendor/codemirror-merge.js";
import { el, find } from "./dom.js";
import { spak } from "./language.js";
import { signs } from "./signs.js";

export const looks = (nonce, label) => [
  EditorView.cspNonce.of(nonce),
  EditorView.lineWrapping,
  EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
  lineNumbers(),
  signs,
  spak,
  syntaxHighlighting(classHighlighter),
];

export async function fetched(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return (await response.text()).replaceAll("\r\n", "\n");
}

async function begin(place) {
  const { old, new: next, oldName, newName, nonce } = place.dataset;
  const [left, right] = await Promise.all([fetched(old), fetched(next)]);
  const still = [EditorState.readOnly.of(true), EditorView.editable.of(false)];
  const table = find(".code-scroll", place);
  const holder = el("div", { class: "merge-editor" });
  const kept = el("details", {}, el("summary", {}, "As a table"));
  if (table) {
    table.before(holder, kept);
    kept.append(table);
  } else place.prepend(holder);
  new MergeView({
    a: { doc: left, extensions: [looks(nonce, oldName), still] },
    b: { doc: right, extensions: [looks(nonce, newName), still] },
    parent: holder,
    collapseUnchanged: { margin: 3, minSize: 6 },
    gutter: true,
  });
  place.dataset.ready = "true";
}

const place = find("#side-by-side");
if (place) begin(place).catch(() => {}); // The table is there already.
