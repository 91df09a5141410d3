// Colours for .spak in the browser. It knows words (generated/words.js, made from the language's tables) and
// what may stand next to them; the server's parser is what decides about a spec.

import { LanguageSupport, StreamLanguage } from "../../vendor/codemirror.js";
import * as words from "./generated/words.js";

const KEYWORDS = new Set(words.KEYWORDS);
const SETTINGS = new Set(words.SETTINGS);
const TAGGED = new Set(words.TAGGED);
const FUNCTIONS = new Set(words.FUNCTIONS);
const TYPES = new Set(words.TYPES);
const CONSTANTS = new Set(words.CONSTANTS);
const NAMED = { agent: "className", system_model: "className", task: "variableName.definition", step: "variableName.definition" };
const NAME = /^[\p{L}_][\p{L}\p{N}_]*(?:[.-][\p{L}\p{N}_]+)*/u;
const HOLE = /^\{\{[ \t]*[A-Za-z_][\w-]*(?:\.[\w-]+)*[ \t]*\}\}/;

function inText(stream, state) {
  if (stream.match(HOLE)) return "variableName.special";
  const end = state.text === '"""' ? '"""' : '"';
  while (!stream.eol()) {
    if (stream.match(HOLE, false)) return "string";
    if (stream.match(end)) {
      state.text = "";
      return "string";
    }
    if (stream.next() === "\\" && !stream.eol()) stream.next();
  }
  if (end === '"') state.text = "";
  return "string";
}

function word(stream, state, text) {
  const small = text.toLowerCase();
  const before = state.before;
  state.before = small;
  if (before === "->") return "variableName";
  if (stream.match(/^\s*->/, false)) {
    const first = small === "start" && !stream.string.slice(0, stream.start).trim();
    return first ? "keyword" : "labelName";
  }
  if (before in NAMED) return NAMED[before];
  if (before === "check" && stream.match(/^\s*:/, false)) return "variableName.definition";
  if (/^(tool|llm)\./.test(small)) return "typeName";
  if (TAGGED.has(before)) return "typeName";
  if (FUNCTIONS.has(text) && stream.match(/^\s*\(/, false)) return "variableName.standard";
  if (KEYWORDS.has(small) && !(stream.match(/^\s*=/, false) && !stream.match(/^\s*==/, false))) return "keyword";
  if (SETTINGS.has(small)) return "propertyName";
  if (CONSTANTS.has(small)) return "atom";
  if (TYPES.has(text)) return "typeName";
  return stream.match(/^\s*(:|=(?!=))/, false) ? "propertyName" : "variableName";
}

export const spak = new LanguageSupport(
  StreamLanguage.define({
    name: "spak",
    startState: () => ({ text: "", before: "" }),
    copyState: (state) => ({ ...state }),
    token(stream, state) {
      if (state.text) return inText(stream, state);
      if (stream.eatSpace()) return null;
      if (stream.match(/^(\/\/|#).*/)) return "comment";
      const quote = stream.match('"""') ? '"""' : stream.match('"') ? '"' : "";
      if (quote) {
        state.text = quote;
        state.before = "text";
        return "string";
      }
      if (stream.match(/^-?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])/)) {
        state.before = "number";
        return "number";
      }
      const name = stream.match(NAME);
      if (name) return word(stream, state, name[0]);
      if (stream.match(/^(->|==|!=|<=|>=)/)) {
        state.before = stream.current();
        return "operator";
      }
      state.before = stream.next();
      return /[<>=]/.test(state.before) ? "operator" : "punctuation";
    },
    languageData: {
      commentTokens: { line: "//" },
      closeBrackets: { brackets: ["(", "[", "{", '"'] },
      indentOnInput: /^\s*[}\]]$/,
    },
    indent(state, textAfter, context) {
      if (state.text) return null;
      const before = context.lineAt(context.pos, -1).text.replace(/(\/\/|#).*$/, "");
      const base = /^\s*/.exec(before)[0].length;
      const opened = /[{[(]\s*$/.test(before);
      const closes = /^\s*[}\])]/.test(textAfter);
      return Math.max(0, base + context.unit * (opened - closes));
    },
  }),
);
