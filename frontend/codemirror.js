// What the editor's own modules, and codemirror-merge.js, import of CodeMirror. One bundle: two copies of
// @codemirror/state in a page do not know each other's classes.
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
  highlightingFor,
  HighlightStyle,
  indentOnInput,
  indentService,
  indentUnit,
  language,
  LanguageSupport,
  StreamLanguage,
  syntaxHighlighting,
  unfoldAll,
} from "@codemirror/language";
export { forceLinting, lintGutter, lintKeymap, nextDiagnostic, setDiagnostics } from "@codemirror/lint";
export { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search";
export {
  Annotation,
  ChangeSet,
  Compartment,
  EditorSelection,
  EditorState,
  Facet,
  Prec,
  RangeSet,
  RangeSetBuilder,
  StateEffect,
  StateField,
  Text,
  Transaction,
} from "@codemirror/state";
export {
  closeHoverTooltips,
  Decoration,
  drawSelection,
  EditorView,
  gutter,
  GutterMarker,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
  placeholder,
  scrollPastEnd,
  tooltips,
  ViewPlugin,
  WidgetType,
} from "@codemirror/view";
export { classHighlighter, highlightTree, tags } from "@lezer/highlight";
export { StyleModule } from "style-mod";
