// Builds static/vendor/codemirror.js from the packages of package-lock.json and writes its entry and licences.
//
//     cd frontend && npm ci && npm run build
//
// The result is committed, so that nobody needs Node to run the platform; tests/web/editor compares hashes.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const vendor = join(here, "..", "static", "vendor");
const outfile = join(vendor, "codemirror.js");

const built = await build({
  entryPoints: [join(here, "codemirror.js")],
  bundle: true,
  format: "esm",
  minify: true,
  target: ["es2022"],
  legalComments: "none",
  metafile: true,
  outfile,
});

const inside = /node_modules\/((?:@[^/]+\/)?[^/]+)\//;
const names = new Set(
  Object.keys(built.metafile.inputs)
    .map((path) => inside.exec(path)?.[1])
    .filter(Boolean),
);
const packages = [...names].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license, repository } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const address = typeof repository === "string" ? repository : (repository?.url ?? "");
  return {
    name,
    version,
    licence: license,
    source: address.replace(/^git\+/, "").replace(/\.git$/, ""),
    text: file ? readFileSync(join(folder, file), "utf8").trim() : "",
  };
});

const same = new Map();
for (const item of packages) {
  if (!item.text) throw new Error(`${item.name} brings no licence`);
  same.set(item.text, [...(same.get(item.text) ?? []), `${item.name} ${item.version}`]);
}
const texts = [...same].map(([text, of]) => `${of.join("\n")}\n\n${text}\n`);
const licences = "codemirror.LICENSE.txt";
writeFileSync(join(vendor, licences), texts.join(`\n${"-".repeat(80)}\n\n`));

const list = join(vendor, "VENDOR.json");
let entries = [];
try {
  entries = JSON.parse(readFileSync(list, "utf8"));
} catch (error) {
  if (error.code !== "ENOENT") throw error;
}
const entry = {
  name: "codemirror",
  file: "codemirror.js",
  version: packages.find((item) => item.name === "@codemirror/view").version,
  licence: "MIT",
  licence_file: licences,
  sha256: createHash("sha256").update(readFileSync(outfile)).digest("hex"),
  source: "https://github.com/codemirror",
  made_by: "frontend/build.mjs",
  packages: packages.map(({ text, ...rest }) => rest),
};
entries = [...entries.filter((item) => item.name !== entry.name), entry];
entries.sort((left, right) => (left.name < right.name ? -1 : 1));
writeFileSync(list, `${JSON.stringify(entries, null, 2)}\n`);
console.log(`${outfile}: ${readFileSync(outfile).length} bytes, ${packages.length} packages`);
