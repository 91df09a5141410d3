// Verifies a VerificationPack of SPAK without SPAK: one file, no dependency, Node 20 or a browser.
//
//     node verify-pack.mjs run.jsonl [--key KEY] [--log-key KEY] [--witness KEY]
//
// Takes the bytes of a pack and the keys that the reader trusts; gives { ok, run, problems, notes }. Written from
// docs/packs.md; it shares no code with SPAK. It derives no decision again: `spak verify-pack` does that too.

const TYPE = "application/vnd.in-toto+json";
const MEDIA = "application/vnd.dev.sigstore.bundle.v0.3+json";
const PREDICATE = "urn:spak:verification-pack:1";
const BLOB_NAMES = /"(?:\$?blob|proof)":"([A-Za-z0-9_-]{43})"/g;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const AUTHORITIES = ["proposal", "commit", "host"];
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const bytes = (text) => encoder.encode(text);
const textOf = (data) => decoder.decode(data);
const half = (number) => Math.floor(number / 2);
const hex = (data) => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");

function joined(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}

function base64(data) {
  let text = "";
  for (const byte of data) text += String.fromCharCode(byte);
  return btoa(text);
}

/** The bytes of canonical base64; throws for any other text. */
function unbase64(text) {
  const data = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  if (base64(data) !== text) throw new Error("base64 that is not canonical");
  return data;
}

const urlSafe = (data) => base64(data).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const unUrlSafe = (text) =>
  unbase64(text.replaceAll("-", "+").replaceAll("_", "/") + "=".repeat((4 - (text.length % 4)) % 4));
const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
const H = async (text) => urlSafe(await sha256(bytes(text)));

async function isSigned(publicKey, signature, message) {
  const key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, key, signature, message);
}

/** RFC 8785, for names of ASCII. */
function canonical(value) {
  if (typeof value === "string" && !value.isWellFormed()) throw new Error("a text that is not Unicode");
  if (value === undefined) throw new Error("a member is missing");
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const names = Object.keys(value).sort();
  if (names.some((name) => /[^\x00-\x7f]/.test(name))) throw new Error("a name that is not ASCII");
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

/** The object of a canonical text, or null. */
function objectOf(text) {
  try {
    const value = JSON.parse(text);
    if (isObject(value) && canonical(value) === text) return value;
  } catch {} // no JSON
  return null;
}

/** { statement, text, id, signature } of the first line, or null. */
function readHeader(line) {
  const value = objectOf(line) ?? {};
  if ("_type" in value) return { statement: value, text: line };
  try {
    const { payload, signatures } = value.dsseEnvelope;
    const { keyid: id, sig } = signatures[0];
    const envelope = { payload, payloadType: TYPE, signatures: [{ keyid: id, sig }] };
    const material = { publicKey: { hint: id }, tlogEntries: [] };
    const whole = canonical({ dsseEnvelope: envelope, mediaType: MEDIA, verificationMaterial: material });
    const [text, signature] = [textOf(unbase64(payload)), unbase64(sig)];
    if (whole === line) return { statement: objectOf(text) ?? {}, text, id, signature };
  } catch {} // no bundle
  return null;
}

/** A public key of Ed25519: base64url, or PEM, where it follows a prefix of 12 bytes. */
const publicKeyOf = (text) =>
  /^-/.test(text) ? unbase64(text.replace(/-----[A-Z ]+-----|\s/g, "")).subarray(12) : unUrlSafe(text.trim());

async function checkSignature(header, key, report) {
  if (!key && !header.id) return report.note("unsigned", "nobody signed it");
  if (!key) return report.note("not_verified", `it says that key ${header.id} signed it`);
  const [raw, payload] = [publicKeyOf(key), bytes(header.text)];
  const message = joined(bytes(`DSSEv1 ${TYPE.length} ${TYPE} ${payload.length} `), payload);
  const id = (await H(urlSafe(raw))).slice(0, 16);
  const signed = header.id === id && (await isSigned(raw, header.signature, message));
  if (!signed) report.wrong(0, "signature", `not signed by key ${id}`);
}

const leafHash = (data) => sha256(Uint8Array.of(0), data);
const nodeHash = (left, right) => sha256(Uint8Array.of(1), left, right);

async function merkleRoot(leaves) {
  if (leaves.length === 1) return leafHash(leaves[0]);
  const split = 2 ** Math.floor(Math.log2(leaves.length - 1));
  return nodeHash(await merkleRoot(leaves.slice(0, split)), await merkleRoot(leaves.slice(split)));
}

/** RFC 9162, section 2.1.3.2. */
async function isIncluded(leaf, index, size, path, root) {
  let [place, last, found] = [index, size - 1, leaf];
  if (index >= size) return false;
  for (const other of path) {
    if (last === 0) return false;
    if (place % 2 === 1 || place === last) {
      found = await nodeHash(other, found);
      while (place % 2 === 0 && place !== 0) [place, last] = [half(place), half(last)];
    } else found = await nodeHash(found, other);
    [place, last] = [half(place), half(last)];
  }
  return last === 0 && hex(found) === hex(root);
}

/** Whether a note's body has a signature of `name+id+key`: a log (1), or a witness (4) with a time. */
async function isNoteSigned(body, lines, key) {
  const [, name, id, material] = /^([^+\s]+)\+([0-9a-f]{8})\+(\S+)$/.exec(key.trim()) ?? [];
  const raw = unbase64(material ?? "");
  const own = hex((await sha256(bytes(`${name}\n`), raw)).subarray(0, 4));
  if (raw.length !== 33 || own !== id) throw new Error(`${key} is no key of a log`);
  for (const line of lines) {
    const [dash, by, sig] = line.split(" ");
    const data = dash === "\u2014" && by === name ? unbase64(sig) : new Uint8Array(4);
    if (hex(data.subarray(0, 4)) !== id) continue; // of another key
    if (raw[0] === 1) return isSigned(raw.subarray(1), data.subarray(4), bytes(body));
    const time = new DataView(data.buffer, data.byteOffset + 4, 8).getBigUint64(0);
    return isSigned(raw.subarray(1), data.subarray(12), bytes(`cosignature/v1\ntime ${time}\n${body}`));
  }
  return false;
}

async function checkLog(proof, run, keys, report) {
  const wrong = (message) => report.wrong(0, "proof", message);
  const [, front, body, signatures] = /^(.*?)\n\n(.*\n)\n(.*)$/s.exec(proof) ?? [];
  const [first, extra, index, ...path] = front.split("\n");
  const [origin, size, root] = body.split("\n");
  const text = JSON.parse(textOf(unbase64(extra.replace("extra ", "")))).leaf;
  const leaf = objectOf(text);
  if (first !== "c2sp.org/tlog-proof@v1" || !leaf) return wrong("it cannot be read");
  const place = [Number(index.replace("index ", "")), Number(size)];
  const included = await isIncluded(await leafHash(bytes(text)), ...place, path.map(unbase64), unbase64(root));
  if (!included) wrong("the run is not in the checkpoint");
  if (leaf.erased || leaf.run !== run.id) wrong("the log speaks of another run, or it was erased");
  else if (leaf.head !== run.heads[leaf.count - 1]) report.wrong(leaf.count, "checkpoint", "the log has other records");
  else if (base64(await merkleRoot(run.lines.slice(0, leaf.count))) !== leaf.root) wrong("the log has other lines");
  if (!keys.logKey) return report.note("not_verified", `the checkpoint of ${origin} was not verified`);
  if (!keys.key && leaf.count < run.lines.length) wrong("the log has only its first records, nobody signed the rest");
  if (!keys.logKey.startsWith(`${origin}+`)) wrong(`the log is ${origin}`);
  for (const key of [keys.logKey, ...(keys.witnesses ?? [])]) {
    if (!(await isNoteSigned(body, signatures.split("\n"), key))) wrong(`not signed by ${key}`);
  }
}

/** The record of a line, or null. */
function recordOf(text) {
  const record = objectOf(text) ?? {};
  const { kind, authority, task = "", step = "", attempt = 0, seq, at = 0, body, side = {} } = record;
  const texts = [kind, authority, task, step].every((value) => typeof value === "string");
  return texts && [attempt, seq, at].every(Number.isInteger) && isObject(body) && isObject(side) ? record : null;
}

/** What the records of a run say, gathered one by one. */
class Run {
  constructor() {
    Object.assign(this, { id: "", head: "A".repeat(43), summary: "", rules: {}, end: {}, heads: [], lines: [] });
    Object.assign(this, { code: new Set(), named: new Map() });
  }

  async add(line, text, report) {
    const seq = this.lines.length;
    const record = recordOf(text);
    const hash = urlSafe(await sha256(bytes(this.head), line.subarray(51, -1)));
    if (!text.startsWith(`{"#":"${hash}",`)) report.wrong(seq, "chain", "its hash does not follow");
    this.head = hash;
    this.heads.push(hash);
    this.lines.push(line);
    if (record === null) return report.wrong(seq, "line", "not a record in canonical form");
    if (record.seq !== seq) report.wrong(seq, "order", `record ${record.seq} is in its place`);
    if ((record.kind === "genesis") !== (seq === 0)) report.wrong(seq, "genesis", "only the first is the genesis");
    if (!AUTHORITIES.includes(record.authority)) report.wrong(seq, "authority", "of nobody");
    for (const [, digest] of text.matchAll(BLOB_NAMES)) this.named.set(digest, seq);
    const { kind, authority, task = "", step = "", attempt = 0, body } = record;
    if (kind === "genesis") {
      this.rules = isObject(body.rules) ? body.rules : {};
      this.id = body.host?.run ?? "";
      this.summary = await H(canonical([this.rules.kernel ?? 0, this.rules]));
    } else if (authority === "commit") {
      this.summary = await H(this.summary + (await H(canonical([kind, authority, task, step, attempt, body]))));
      if (kind === "end") this.end = body;
    }
    const code = { genesis: body.host, resume: body }[kind]?.kernel_code;
    if (typeof code === "string") this.code.add(code);
  }

  /** The statement of these records, in an export with this hash. */
  async statement(exported, log) {
    const { rules, end } = this;
    const files = Object.entries(end.best?.files ?? {}).sort(([one], [two]) => (one < two ? -1 : 1));
    const made = files.map(([role, blob]) => ({ blob, name: `best.${role}` }));
    const [policy, seed] = [rules.policy?.hash ?? "", rules.seed ?? 0];
    const predicate = {
      artifacts: made,
      files: { after: end.r3 ?? "", before: rules.r3 ?? "" },
      genesis: { policy, rules: await H(canonical(rules)), seed, spec: await H(rules.spec ?? "") },
      kernel: { code: [...this.code], semantics: rules.kernel ?? 0 },
      ledger: { head: this.head, records: this.lines.length },
      replay: ["spak verify-pack FILE", "spak import FILE", `spak replay ${this.id}`],
      run: this.id,
      state: end.state ?? "",
      summary: this.summary,
      ...(log !== undefined && { log }),
    };
    const subject = made.map(({ blob, name }) => ({ digest: { sha256: hex(unUrlSafe(blob)) }, name }));
    subject.unshift({ digest: { sha256: exported }, name: `${this.id}.jsonl` });
    return { _type: "https://in-toto.io/Statement/v1", predicate, predicateType: PREDICATE, subject };
  }
}

async function checkBlob(text, last, run, report) {
  const value = objectOf(text) ?? {};
  const digest = urlSafe(await sha256(unbase64(value.data)));
  if (Object.keys(value).length !== 2 || digest !== value.blob) throw new Error(`blob ${value.blob}`);
  if (value.blob <= last) report.wrong(run.lines.length, "order", `blob ${value.blob} is out of order`);
  run.named.delete(value.blob);
  return value.blob;
}

function* linesOf(data) {
  for (let [at, end] = [0, 0]; at < data.length; at = end) {
    end = data.indexOf(10, at) + 1 || data.length;
    yield data.subarray(at, end);
  }
}

/** Checks the bytes of a pack; `keys` are { key, logKey, witnesses }. Never throws, whatever the bytes are. */
export async function verifyPack(data, keys = {}) {
  const [run, problems, notes] = [new Run(), [], []];
  const report = {
    wrong: (seq, code, message) => void problems.push({ seq, code, message }),
    note: (code, message) => void notes.push({ code, message }),
  };
  try {
    await check(data, keys, run, report);
  } catch (error) {
    report.wrong(run.lines.length, "line", `it cannot be read: ${error.message}`);
  }
  return { ok: problems.length === 0, run: run.id, problems, notes };
}

async function check(data, keys, run, report) {
  const start = data.indexOf(10) + 1;
  const header = readHeader(textOf(data.subarray(0, Math.max(start - 1, 0))));
  if (header === null) return report.wrong(0, "header", "the first line is no statement");
  let [blobs, last, footer] = [0, "", null];
  const now = () => run.lines.length;
  for (const line of linesOf(data.subarray(start))) {
    const text = textOf(line).slice(0, -1);
    if (footer !== null || line.at(-1) !== 10) report.wrong(now(), "footer", "a line after the end, or cut");
    if (text.startsWith('{"blob":')) [last, blobs] = [await checkBlob(text, last, run, report), blobs + 1];
    else if (text.startsWith('{"blobs":')) footer = text;
    else if (blobs > 0) report.wrong(now(), "order", "a record after a blob");
    else await run.add(line, text, report);
  }
  const wanted = canonical({ blobs, count: run.lines.length, footer: 1, head: run.head, run: run.id });
  if (footer !== wanted) report.wrong(now(), "footer", "it is missing, or not of these lines");
  for (const [digest, seq] of run.named) report.wrong(seq, "blob", `blob ${digest} is missing`);
  const log = header.statement.predicate?.log;
  const stated = canonical(await run.statement(hex(await sha256(data.subarray(start))), log));
  if (stated !== header.text) report.wrong(now(), "statement", "it is not of these records");
  await checkSignature(header, keys.key, report);
  if (log !== undefined) await checkLog(log, run, keys, report);
  else if (keys.logKey) report.wrong(0, "proof", "the pack has no proof that a log has the run");
}

if (globalThis.process?.argv[1]?.endsWith("verify-pack.mjs")) {
  const { readFileSync, existsSync } = await import("node:fs");
  const { parseArgs } = await import("node:util");
  const text = { type: "string" };
  const options = { key: text, "log-key": text, witness: { type: "string", multiple: true } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const key = (name) => (name && (existsSync(name) || name.length < 43) ? readFileSync(name, "utf8") : name);
  const keys = { key: key(values.key), logKey: key(values["log-key"]), witnesses: values.witness?.map(key) };
  if (positionals.length === 0) throw new Error("name a pack: node verify-pack.mjs PACK --key FILE");
  for (const pack of positionals) {
    const found = await verifyPack(readFileSync(pack), keys);
    console.log(JSON.stringify({ file: pack, ...found }));
    process.exitCode ||= found.ok ? 0 : 1;
  }
}
