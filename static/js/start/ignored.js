// What git would ignore of a folder: the rules of its .gitignore files, as gitignore(5) has them. `rulesOf` reads
// one such file, `ignores` judges a path by the rules of all folders above it, the outermost first.

const SPECIAL = /[.+^${}()|\\/]/g;

// The folder of the file, with a slash at its end; empty: the top.
export function rulesOf(text, folder) {
  const rules = [];
  for (const line of text.split(/\r?\n/)) {
    let pattern = line.replace(/(?<!\\)\s+$/, "");
    if (!pattern || pattern.startsWith("#")) continue;
    const back = pattern.startsWith("!");
    if (back) pattern = pattern.slice(1);
    const folders = pattern.endsWith("/");
    if (folders) pattern = pattern.slice(0, -1);
    const anywhere = !pattern.includes("/");
    const head = folder.replace(SPECIAL, "\\$&") + (anywhere ? "(?:.*/)?" : "");
    try {
      rules.push({ back, folders, fits: new RegExp(`^${head}${expression(pattern.replace(/^\//, ""))}$`) });
    } catch {
      // A class that git could not read either.
    }
  }
  return rules;
}

export function ignores(rules, path, isFolder) {
  let ignored = false;
  for (const { back, folders, fits } of rules) if ((isFolder || !folders) && fits.test(path)) ignored = !back;
  return ignored;
}

function expression(pattern) {
  return pattern.replace(/\\(.)|\/\*\*\/|^\*\*\/|\/\*\*$|\*+|\?|\[!?\]?[^\]]*\]|[.+^${}()|\\/[\]]/g, (found, escaped) => {
    if (escaped) return escaped.replace(SPECIAL, "\\$&").replace(/[*?[\]]/, "\\$&");
    if (found === "/**/") return "/(?:.*/)?";
    if (found === "**/") return "(?:.*/)?";
    if (found === "/**") return "/.+";
    if (found.startsWith("*")) return "[^/]*";
    if (found === "?") return "[^/]";
    if (found.length > 1) return found.replace(/^\[!/, "[^");
    return `\\${found}`;
  });
}
