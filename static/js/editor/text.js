// The text pane: CodeMirror with what the server knows of the language.

import {
  acceptCompletion,
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  codeFolding,
  classHighlighter,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  EditorSelection,
  EditorState,
  EditorView,
  foldGutter,
  foldKeymap,
  foldService,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSelectionMatches,
  history,
  historyKeymap,
  hoverTooltip,
  indentOnInput,
  indentUnit,
  indentWithTab,
  isolateHistory,
  keymap,
  lineNumbers,
  lintGutter,
  nextDiagnostic,
  Prec,
  scrollPastEnd,
  search,
  searchKeymap,
  setDiagnostics,
  snippetCompletion,
  StateEffect,
  StateField,
  syntaxHighlighting,
} from "../../vendor/codemirror.js";
import { el, form, prose, toast } from "./dom.js";
import { spak } from "./language.js";
import { ask, sentence } from "./server.js";
import { signs } from "./signs.js";

export const MAX_BYTES = 256 * 1024;

// ---- folds that the server found, kept in place while the text changes

const foldsFound = StateEffect.define();
const foldable = StateField.define({
  create: () => [],
  update(found, transaction) {
    for (const effect of transaction.effects) if (effect.is(foldsFound)) return effect.value;
    if (!transaction.docChanged) return found;
    return found.map(({ from, to }) => ({ from: transaction.changes.mapPos(from, 1), to: transaction.changes.mapPos(to, -1) }));
  },
});

function foldAt(state, lineStart, lineEnd) {
  for (const { from, to } of state.field(foldable)) {
    if (from < lineStart || from > lineEnd || to <= lineEnd) continue;
    const bracket = "{[(".includes(state.sliceDoc(from, from + 1));
    return bracket ? { from: from + 1, to } : { from: lineEnd, to };
  }
  return null;
}

const foldsCame = (update) => update.transactions.some(({ effects }) => effects.some((effect) => effect.is(foldsFound)));

// ---- too much text is refused before it is in

function size(length, of) {
  return length >= 1024 * 1024 ? `${(length / 1024 / 1024).toFixed(1)} MB` : `${Math.ceil(length / 1024)} KB`;
}

const limit = EditorState.changeFilter.of((transaction) => {
  if (!transaction.docChanged) return true;
  const length = transaction.changes.newLength;
  if (length <= MAX_BYTES || length <= transaction.startState.doc.length) return true;
  const message = `That would make the spec ${size(length)}; a spec is at most ${MAX_BYTES / 1024} KB. Nothing was put in.`;
  queueMicrotask(() => toast(message, "error"));
  return false;
});

// What is pasted or dropped loses the characters that no text may have: they could be neither checked nor kept.
const readable = EditorView.clipboardInputFilter.of((text) => {
  const kept = text.replaceAll("\0", "").toWellFormed();
  if (kept !== text) queueMicrotask(() => toast("Some characters cannot be in a spec. They were removed or replaced by �.", "error"));
  return kept;
});

// Over a selection Chromium would put the letters in a span with the style of what was selected, which the
// content policy refuses and reports. So the letters come as a transaction, as they do without a selection.
function typedOver(event, view) {
  const { state } = view;
  if (event.inputType !== "insertText" || typeof event.data !== "string" || view.composing || state.readOnly || state.selection.ranges.every((range) => range.empty)) return false;
  const { from, to } = state.selection.main;
  const plain = () => state.update(state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  event.preventDefault();
  if (!state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, event.data, plain))) view.dispatch(plain());
  return true;
}

// ---- the editor

export class TextPane {
  constructor(place, config, on) {
    this.config = config;
    this.on = on;
    this.view = new EditorView({
      parent: place,
      state: EditorState.create({
        doc: config.text,
        extensions: [this.extensions(), on.extensions ?? []],
      }),
    });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  extensions() {
    const { config } = this;
    const editable = config.can_edit;
    return [
      EditorView.cspNonce.of(config.nonce),
      EditorState.allowMultipleSelections.of(true),
      EditorState.readOnly.of(!editable),
      EditorView.contentAttributes.of({ "aria-label": `Text of ${config.spec.name}`, tabindex: "0", spellcheck: "false", autocapitalize: "off", autocorrect: "off" }),
      limit,
      readable,
      lineNumbers(),
      highlightActiveLineGutter(),
      lintGutter(),
      signs,
      history(),
      foldable,
      foldService.of(foldAt),
      codeFolding({ placeholderText: "…" }),
      foldGutter({ openText: "▾", closedText: "▸", foldingChanged: foldsCame }),
      drawSelection(),
      indentUnit.of("  "),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      highlightSelectionMatches(),
      EditorView.lineWrapping,
      search({ top: true }),
      scrollPastEnd(),
      spak,
      syntaxHighlighting(classHighlighter),
      autocompletion({ override: [(context) => this.complete(context)], icons: false, optionClass: (item) => `k-${item.type}` }),
      hoverTooltip((view, at) => this.hover(at), { hoverTime: 350 }),
      Prec.high(
        keymap.of([
          { key: "Mod-s", run: () => (this.on.save(), true) },
          { key: "F1", run: () => (this.explain(), true) },
          { key: "F12", run: () => (this.define(), true) },
          { key: "Shift-F12", run: () => (this.refer(), true) },
          { key: "F2", run: () => (this.rename(), true) },
          { key: "Shift-Alt-f", run: () => (this.format(), true) },
          { key: "Mod-.", run: () => this.fixHere() },
          { key: "F8", run: nextDiagnostic },
          { key: "Tab", run: acceptCompletion },
        ]),
      ),
      keymap.of([...closeBracketsKeymap, ...completionKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...defaultKeymap, indentWithTab]),
      EditorView.domEventHandlers({
        beforeinput: typedOver,
        mousedown: (event, view) => {
          if (!(event.ctrlKey || event.metaKey) || event.button !== 0) return false;
          const at = view.posAtCoords({ x: event.clientX, y: event.clientY });
          if (at == null) return false;
          this.define(at);
          return true;
        },
      }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) this.on.change(this.text, update);
        if (update.docChanged || update.selectionSet) this.on.cursor(update.state.selection.main.head);
      }),
    ];
  }

  // Changes of the server as one transaction, which one undo takes back.
  apply(changes, { userEvent = "input.edit", select = null } = {}) {
    if (!changes.length) return false;
    const { state } = this.view;
    const made = state.changes(changes);
    this.view.dispatch({
      changes: made,
      selection: select == null ? state.selection.map(made) : EditorSelection.cursor(select),
      annotations: isolateHistory.of("full"),
      userEvent,
      scrollIntoView: false,
    });
    const first = Math.min(...changes.map((change) => change.from));
    if (select == null) this.view.dispatch({ effects: EditorView.scrollIntoView(Math.min(first, this.view.state.doc.length), { y: "nearest", yMargin: 60 }) });
    return true;
  }

  replace(text) {
    this.apply([{ from: 0, to: this.view.state.doc.length, insert: text }], { userEvent: "input.restore" });
  }

  show(from, to = from, focus = true) {
    const end = this.view.state.doc.length;
    this.view.dispatch({
      selection: EditorSelection.range(Math.min(from, end), Math.min(to, end)),
      effects: EditorView.scrollIntoView(Math.min(from, end), { y: "center" }),
    });
    if (focus) this.view.focus();
  }

  // What was found in exactly this text; nothing where it has changed meanwhile.
  annotate(analysis) {
    const end = this.view.state.doc.length;
    const clip = (at) => Math.min(at, end);
    const diagnostics = analysis.diagnostics.map((item) => {
      let [from, to] = [clip(item.from), clip(item.to)];
      if (from === to) [from, to] = to < end && this.view.state.sliceDoc(to, to + 1) !== "\n" ? [from, to + 1] : [Math.max(0, from - 1), to];
      return {
        from,
        to,
        severity: item.severity,
        source: item.code,
        renderMessage: () => el("div", {}, el("div", {}, item.message), item.hint ? el("div", { class: "hint" }, item.hint) : null),
        message: item.message,
        actions: this.config.can_edit ? item.fixes.map((fix) => ({ name: fix.title, apply: () => this.fix(item, fix) })) : [],
      };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics), { effects: foldsFound.of(analysis.folds) });
  }

  fix(item, fix) {
    if (this.on.stale()) {
      toast("The text has changed. Checking it again.", "warning");
      return;
    }
    this.apply(fix.changes, { userEvent: "input.fix" });
    toast(`${fix.title}: done`, "info", { label: "Undo", run: () => this.on.undo() });
  }

  fixHere() {
    const at = this.view.state.selection.main.head;
    const line = this.view.state.doc.lineAt(at);
    const near = (this.on.analysis()?.diagnostics ?? []).filter((item) => item.fixes.length && item.from <= line.to && item.to >= line.from);
    near.sort((left, right) => Math.abs(left.from - at) - Math.abs(right.from - at));
    if (!near.length) {
      toast("There is no fix for this line.");
      return true;
    }
    this.fix(near[0], near[0].fixes[0]);
    return true;
  }

  // ---- at a place

  question(at, more = {}) {
    return { text: this.text, at, ...more };
  }

  async complete(context) {
    const before = context.matchBefore(/[\p{L}\p{N}_.-]+|\{\{[ \t]*|->[ \t]*/u);
    if (!context.explicit && !before) return null;
    const controller = new AbortController();
    context.addEventListener("abort", () => controller.abort());
    let answer;
    try {
      answer = await ask(this.config.urls.complete, this.question(context.pos), { signal: controller.signal });
    } catch {
      return null; // Without the server there is nothing to offer; the banner says so.
    }
    if (!answer.items.length) return null;
    const options = answer.items.map((item, index) => {
      const about = item.about ? () => prose(item.about) : undefined;
      const option = { label: item.label, type: item.kind, detail: item.kind === "keyword" ? "" : item.kind, info: about, boost: -index / 100 };
      if (item.snippet) return snippetCompletion(item.insert.replaceAll("$0", "${}"), option);
      return item.insert === item.label ? option : { ...option, apply: item.insert };
    });
    return { from: answer.items[0].from, options, validFor: /^[\p{L}\p{N}_.-]*$/u };
  }

  async hover(at) {
    let answer;
    try {
      answer = await ask(this.config.urls.hover, this.question(at));
    } catch {
      return null;
    }
    if (!answer.text) return null;
    const more = el("a", { href: answer.docs, target: "_blank", rel: "noopener" }, "Documentation");
    return { pos: answer.from, end: answer.to, above: true, create: () => ({ dom: el("div", { class: "hover" }, prose(answer.text), el("p", {}, more)) }) };
  }

  // The section of the documentation about the word at the cursor, in a tab that is opened before the answer
  // comes, since a browser lets nothing else open one.
  explain(at = this.view.state.selection.main.head) {
    const page = window.open("", "_blank");
    return this.tried(async () => {
      const { docs } = await ask(this.config.urls.hover, this.question(at));
      if (page) page.location = docs ?? this.config.urls.docs;
    });
  }

  async tried(action) {
    try {
      return await action();
    } catch (error) {
      toast(sentence(error), "error");
      return null;
    }
  }

  define(at = this.view.state.selection.main.head) {
    return this.tried(async () => {
      const { places } = await ask(this.config.urls.definition, this.question(at));
      const here = places.find((place) => !place.file);
      if (here) this.show(here.from, here.to);
      else toast(places.length ? `It is in ${places[0].file}.` : "Nothing to rename here.");
    });
  }

  refer(at = this.view.state.selection.main.head) {
    return this.tried(async () => {
      const { places } = await ask(this.config.urls.references, this.question(at));
      if (!places.length) return toast("Nothing to rename here.");
      this.view.dispatch({ selection: EditorSelection.create(places.map((place) => EditorSelection.range(place.from, place.to)), 0) });
      this.view.focus();
      return toast(`${places.length} places; typing changes them all, Esc keeps one.`);
    });
  }

  rename(at = this.view.state.selection.main.head) {
    return this.tried(async () => {
      const url = this.config.urls.rename;
      const now = await ask(url, this.question(at));
      let done = null;
      const values = await form(`Rename ${now.name}`, [{ name: "new", label: "New name", value: now.name, required: true }], {
        submit: "Rename",
        check: async ({ new: name }) => {
          try {
            done = await ask(url, this.question(at, { new: name }));
            return "";
          } catch (error) {
            return sentence(error);
          }
        },
      });
      if (values && done) {
        this.apply(done.changes, { userEvent: "input.rename" });
        toast(`${now.name} is now ${values.new}: ${done.changes.length} places`);
      }
    });
  }

  format() {
    return this.tried(async () => {
      const { text } = this;
      const { changes } = await ask(this.config.urls.format, { text });
      if (this.text !== text) throw new Error("The text changed meanwhile. Try again.");
      toast(this.apply(changes, { userEvent: "input.format" }) ? "Formatted; the meaning is the same." : "Already formatted.");
    });
  }
}
