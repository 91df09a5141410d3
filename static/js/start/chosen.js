// What somebody dropped or chose, as [{ path, file }]: a folder's contents with their paths below it. Stops with
// TooMuch as soon as there is more than the limits take, so that a huge folder is not read to its end.

export class TooMuch extends Error {}

export class Counted {
  constructor(mostFiles, mostBytes) {
    this.mostFiles = mostFiles;
    this.mostBytes = mostBytes;
    this.entries = [];
    this.bytes = 0;
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
  for (const file of files) counted.add(file.webkitRelativePath ? file.webkitRelativePath.split("/").slice(1).join("/") : file.name, file);
  const folder = files[0]?.webkitRelativePath.split("/")[0];
  return folder || files[0].name;
}

// What was dropped. One folder alone stands for its contents. Gives what to call it.
export async function fromDrop(items, counted) {
  const tops = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const only = tops.length === 1 && tops[0].isDirectory;
  for (const top of tops) await walk(top, only ? "" : top.name, counted);
  return tops[0]?.name ?? "";
}

async function walk(entry, path, counted) {
  if (entry.isFile) {
    counted.add(path, await new Promise((found, failed) => entry.file(found, failed)));
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((found, failed) => reader.readEntries(found, failed));
    if (!some.length) return;
    for (const one of some) await walk(one, path ? `${path}/${one.name}` : one.name, counted);
  }
}
