// Builds static/vendor/codemirror.js and codemirror-merge.js from the packages of package-lock.json and writes
// their entries and licences.
//
//     cd frontend && npm ci && npm run build
//
// The results are committed, so that nobody needs Node to run the platform; tests/web/editor compares hashes.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const vendor = join(here, "..", "static", "vendor");

// The second bundle takes what both need from the first: two copies would not know each other's classes.
const SHARED = /^(@codemirror\/(state|view|language)|@lezer\/highlight|style-mod)$/;
const shared = {
  name: "shared",
  setup: ({ onResolve }) => onResolve({ filter: SHARED }, () => ({ path: "./codemirror.js", external: true })),
};

async function bundle(name, plugins) {
  const built = await build({
    entryPoints: [join(here, `${name}.js`)],
    bundle: true,
    format: "esm",
    minify: true,
    target: ["es2022"],
    legalComments: "none",
    metafile: true,
    plugins,
    outfile: join(vendor, `${name}.js`),
  });
  return Object.keys(built.metafile.inputs);
}

const inside = /node_modules\/((?:@[^/]+\/)?[^/]+)\//;

function packages(inputs) {
  const names = new Set(inputs.map((path) => inside.exec(path)?.[1]).filter(Boolean));
  return [...names].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const { version, license, repository } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} brings no licence`);
    const address = typeof repository === "string" ? repository : (repository?.url ?? "");
    const source = address.replace(/^git\+/, "").replace(/\.git$/, "");
    return { name, version, licence: license, source, text: readFileSync(join(folder, file), "utf8").trim() };
  });
}

function licences(name, found) {
  const same = new Map();
  for (const item of found) same.set(item.text, [...(same.get(item.text) ?? []), `${item.name} ${item.version}`]);
  const texts = [...same].map(([text, of]) => `${of.join("\n")}\n\n${text}\n`);
  writeFileSync(join(vendor, `${name}.LICENSE.txt`), texts.join(`\n${"-".repeat(80)}\n\n`));
}

const list = join(vendor, "VENDOR.json");
let entries = [];
try {
  entries = JSON.parse(readFileSync(list, "utf8"));
} catch (error) {
  if (error.code !== "ENOENT") throw error;
}
for (const [name, plugins, of] of [
  ["codemirror", [], "@codemirror/view"],
  ["codemirror-merge", [shared], "@codemirror/merge"],
]) {
  const found = packages(await bundle(name, plugins));
  licences(name, found);
  const content = readFileSync(join(vendor, `${name}.js`));
  const entry = {
    name,
    file: `${name}.js`,
    version: found.find((item) => item.name === of).version,
    licence: "MIT",
    licence_file: `${name}.LICENSE.txt`,
    sha256: createHash("sha256").update(content).digest("hex"),
    source: "https://github.com/codemirror",
    made_by: "frontend/build.mjs",
    packages: found.map(({ text, ...rest }) => rest),
  };
  entries = [...entries.filter((item) => item.name !== name), entry];
  console.log(`${name}.js: ${content.length} bytes, ${found.length} packages`);
}
entries.sort((left, right) => (left.name < right.name ? -1 : 1));
writeFileSync(list, `${JSON.stringify(entries, null, 2)}\n`);
