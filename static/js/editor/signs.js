// Shows signs that have no width, or that turn the direction of a text, where they stand: beside those that
// CodeMirror knows the ones that spakweb.ground.unsafe_text reveals on other pages.

import { highlightSpecialChars } from "../../vendor/codemirror.js";

export const signs = highlightSpecialChars({
  addSpecialChars: /[\u115f\u1160\u180e\u202a-\u202c\u2060-\u2065\u2068\u206a-\u206f\u3164\uffa0]/,
});
