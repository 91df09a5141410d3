// What somebody dropped or chose, as [{ path, file }]: a folder's contents with their paths below it. Stops with
// TooMuch as soon as there is more than the limits take, so that a huge folder is not read to its end.

import { ignores, rulesOf } from "./ignored.js";

export class TooMuch extends Error {}

// History and its addresses, which may hold passwords: never brought.
const GIT = ".git";
const IGNORED = "what .gitignore names", RULES = ".gitignore";
// Folders that tools make again, and that are large: left out unless they are asked for.
const MADE = new Set([".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox"]);

export class Counted {
  constructor(mostFiles, mostBytes, whole = false) {
    this.mostFiles = mostFiles;
    this.mostBytes = mostBytes;
    this.whole = whole;
    this.left = new Set();
    this.entries = [];
    this.bytes = 0;
  }

  // Whether something is left out: by its name, or by rules of .gitignore files above it.
  leaves(name, path, isFolder, rules) {
    const word = name === GIT ? GIT : this.whole ? "" : isFolder && MADE.has(name) ? name : ignores(rules, path, isFolder) ? IGNORED : "";
    if (word) this.left.add(word);
    return Boolean(word);
  }

  add(path, file) {
    this.bytes += file.size;
    if (this.entries.length >= this.mostFiles) throw this.tooMany();
    if (this.bytes > this.mostBytes) throw new TooMuch(`The files are more than ${Math.floor(this.mostBytes / 1048576)} MiB. Leave out what the run does not need.`);
    this.entries.push({ path, file });
  }

  tooMany() {
    return new TooMuch(`There are more than ${this.mostFiles.toLocaleString("en")} files. Leave out what the run does not need, such as node_modules or build results.`);
  }
}

// The files of an <input>; those of a folder come with its name in front of their paths.
export async function fromInput(files, counted) {
  const rules = [], paths = new Map(files.map((file) => [file, file.webkitRelativePath.split("/").slice(1)]));
  const told = files.filter((file) => file.name === RULES && paths.get(file).length).sort((one, other) => paths.get(one).length - paths.get(other).length);
  for (const file of told) rules.push(...rulesOf(await file.text(), paths.get(file).slice(0, -1).map((part) => `${part}/`).join("")));
  for (const [file, path] of paths) {
    if (path.some((name, place) => counted.leaves(name, path.slice(0, place + 1).join("/"), place < path.length - 1, rules))) continue;
    counted.add(path.join("/") || file.name, file);
  }
  const folder = files[0]?.webkitRelativePath.split("/")[0];
  return folder || files[0].name;
}

// What was dropped; to be asked for while the event is under way.
export function entriesOf(items) {
  return [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
}

// The files of what was dropped. One folder alone stands for its contents. Gives what to call it.
export async function fromDrop(tops, counted) {
  const only = tops.length === 1 && tops[0].isDirectory;
  for (const top of tops) await walk(top, only ? "" : top.name, counted, []);
  return tops[0]?.name ?? "";
}

async function walk(entry, path, counted, rules) {
  if (path && counted.leaves(entry.name, path, entry.isDirectory, rules)) return;
  if (entry.isFile) {
    counted.add(path, await fileOf(entry));
    return;
  }
  const reader = entry.createReader(), inside = [], folder = path ? `${path}/` : "";
  for (;;) {
    const some = await new Promise((found, failed) => reader.readEntries(found, failed));
    if (!some.length) break;
    inside.push(...some);
    if (inside.length > counted.mostFiles) throw counted.tooMany();
  }
  const told = inside.find((one) => one.isFile && one.name === RULES);
  const known = told ? [...rules, ...rulesOf(await (await fileOf(told)).text(), folder)] : rules;
  for (const one of inside) await walk(one, folder + one.name, counted, known);
}

function fileOf(entry) {
  return new Promise((found, failed) => entry.file(found, failed));
}
