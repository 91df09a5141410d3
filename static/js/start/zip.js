// Packs files into a zip without compressing them, so that a folder travels as one file with its paths. Takes
// [{ path, file }], gives a Blob. Each file is read once: what is hashed is what is sent. A file that cannot be
// read, because it changed or went away meanwhile, is named by the error Unreadable.

const TABLE = Uint32Array.from({ length: 256 }, (_, number) => {
  for (let bit = 0; bit < 8; bit++) number = number & 1 ? (number >>> 1) ^ 0xedb88320 : number >>> 1;
  return number;
});
const LOCAL = 0x04034b50, LISTED = 0x02014b50, END = 0x06054b50, UTF8 = 0x0800, VERSION = 20, DAY_ONE = 0x21;

export class Unreadable extends Error {}

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

// Little-endian numbers, each [value, bytes].
function numbers(...fields) {
  const bytes = [];
  for (const [value, size] of fields) for (let at = 0; at < size; at++) bytes.push((value >>> (8 * at)) & 255);
  return Uint8Array.from(bytes);
}

export async function pack(entries, packed = () => {}) {
  const parts = [], list = [];
  let at = 0, listSize = 0;
  for (const [done, { path, file }] of entries.entries()) {
    const data = await read(path, file), name = new TextEncoder().encode(path);
    const about = [[VERSION, 2], [UTF8, 2], [0, 2], [0, 2], [DAY_ONE, 2], [crc32(data), 4], [data.length, 4], [data.length, 4], [name.length, 2], [0, 2]];
    const head = numbers([LOCAL, 4], ...about);
    parts.push(head, name, new Blob([data]));
    list.push(numbers([LISTED, 4], [VERSION, 2], ...about, [0, 2], [0, 2], [0, 2], [0, 4], [at, 4]), name);
    listSize += 46 + name.length;
    at += head.length + name.length + data.length;
    packed(done + 1);
  }
  const count = [entries.length, 2];
  return new Blob([...parts, ...list, numbers([END, 4], [0, 2], [0, 2], count, count, [listSize, 4], [at, 4], [0, 2])], { type: "application/zip" });
}

async function read(path, file) {
  try {
    return new Uint8Array(await file.arrayBuffer());
  } catch {
    throw new Unreadable(path);
  }
}
