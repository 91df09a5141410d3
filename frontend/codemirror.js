// What the editor's own modules import of CodeMirror. One bundle: two copies of @codemirror/state in a page
// do not know each other's classes.
export {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  completionStatus,
  snippetCompletion,
  startCompletion,
} from "@codemirror/autocomplete";
export {
  defaultKeymap,
  history,
  historyKeymap,
  indentWithTab,
  isolateHistory,
  redo,
  redoDepth,
  undo,
  undoDepth,
} from "@codemirror/commands";
export {
  bracketMatching,
  codeFolding,
  foldGutter,
  foldKeymap,
  foldAll,
  foldService,
  HighlightStyle,
  indentOnInput,
  indentService,
  indentUnit,
  LanguageSupport,
  StreamLanguage,
  syntaxHighlighting,
  unfoldAll,
} from "@codemirror/language";
export { forceLinting, lintGutter, lintKeymap, nextDiagnostic, setDiagnostics } from "@codemirror/lint";
export { getChunks, goToNextChunk, goToPreviousChunk, MergeView } from "@codemirror/merge";
export { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search";
export {
  Annotation,
  Compartment,
  EditorSelection,
  EditorState,
  Prec,
  StateEffect,
  StateField,
  Transaction,
} from "@codemirror/state";
export {
  closeHoverTooltips,
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
  placeholder,
  scrollPastEnd,
  tooltips,
} from "@codemirror/view";
export { classHighlighter, tags } from "@lezer/highlight";
