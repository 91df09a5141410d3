// What somebody dropped or chose, as [{ path, file }]: a folder's contents with their paths below it. Stops with
// TooMuch as soon as there is more than the limits take, so that a huge folder is not read to its end.

export class TooMuch extends Error {}

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

  leaves(folder) {
    if (this.whole || !MADE.has(folder)) return false;
    this.left.add(folder);
    return true;
  }

  add(path, file) {
    this.bytes += file.size;
    if (this.entries.length >= this.mostFiles) throw new TooMuch(`There are more than ${this.mostFiles.toLocaleString("en")} files. Leave out what the run does not need, such as node_modules or build results.`);
    if (this.bytes > this.mostBytes) throw new TooMuch(`The files are more than ${Math.floor(this.mostBytes / 1048576)} MiB. Leave out what the run does not need.`);
    this.entries.push({ path, file });
  }
}

// The files of an <input>; those of a folder come with its name in front of their paths.
export function fromInput(files, counted) {
  for (const file of files) {
    const path = file.webkitRelativePath.split("/").slice(1);
    if (path.slice(0, -1).some((folder) => counted.leaves(folder))) continue;
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
  for (const top of tops) await walk(top, only ? "" : top.name, counted);
  return tops[0]?.name ?? "";
}

async function walk(entry, path, counted) {
  if (entry.isFile) {
    counted.add(path, await new Promise((found, failed) => entry.file(found, failed)));
    return;
  }
  if (path && counted.leaves(entry.name)) return;
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((found, failed) => reader.readEntries(found, failed));
    if (!some.length) return;
    for (const one of some) await walk(one, path ? `${path}/${one.name}` : one.name, counted);
  }
}
