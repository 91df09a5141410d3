// The form that starts a run: files are dropped or chosen, packed (zip.js), sent to the server at once, and
// listed with what the server found. The form then names them by key, so that an error in another field does
// not lose them. Without this script the form itself brings a zip or some files.

import { Counted, entriesOf, fromDrop, fromInput, TooMuch } from "./chosen.js";
import { pack, Unreadable } from "./zip.js";

const box = document.getElementById("run-files");

class Files {
  constructor() {
    this.drop = box.querySelector(".drop");
    this.note = box.querySelector("[data-note]");
    this.list = box.querySelector("[data-list]");
    this.choice = box.querySelector("[data-brought]");
    this.form = box.closest("form");
    this.turn = 0;
    const plain = box.querySelector("[name=brought]");
    plain.removeAttribute("name");  // they travel by themselves
    for (const input of box.querySelectorAll("[type=file]")) input.addEventListener("change", () => this.chosen(input));
    for (const field of box.querySelectorAll("[name=source], [name=ref]")) field.addEventListener("input", () => { box.querySelector("[value=git]").checked = true; });
    this.drop.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.drop.classList.add("over");
    });
    for (const name of ["dragleave", "drop"]) this.drop.addEventListener(name, () => this.drop.classList.remove("over"));
    this.drop.addEventListener("drop", (event) => {
      event.preventDefault();
      const tops = entriesOf(event.dataTransfer.items);
      this.bring((counted) => fromDrop(tops, counted));
    });
    this.whole = box.querySelector("[data-whole]");
    this.whole.addEventListener("click", () => this.bring(this.collect, true));
    this.takeEarly();
  }

  // What was dropped or chosen before this script was here.
  takeEarly() {
    window.early?.end();
    this.drop.classList.remove("over");
    const tops = window.early?.items;
    if (tops?.length) this.bring((counted) => fromDrop(tops, counted));
    else for (const input of box.querySelectorAll("[type=file]")) this.chosen(input);
  }

  chosen(input) {
    if (!input.files.length) return;
    const files = [...input.files];
    input.value = "";
    this.bring(async (counted) => fromInput(files, counted));
  }

  async bring(collect, whole = false) {
    const turn = ++this.turn, counted = new Counted(Number(box.dataset.mostFiles), Number(box.dataset.mostBytes), whole);
    this.collect = collect;
    this.whole.hidden = true;
    this.busy(true);
    try {
      this.say("Reading the files...");
      const name = await collect(counted);
      if (!counted.entries.length) throw new TooMuch("It has no files. Choose files, a folder or a zip.");
      const only = counted.entries.length === 1 && /\.zip$/i.test(name) ? counted.entries[0].file : null;
      const file = only ?? (await pack(counted.entries, (done) => { if (turn === this.turn) this.say(`Packing: ${done} of ${counted.entries.length} files.`); }));
      if (turn !== this.turn) return;
      this.say("Uploading the files...");
      const found = await this.send(file, only ? name : `${name}.zip`, !only);
      if (turn === this.turn) this.show(found, only ? name : name.replace(/\.zip$/, ""), [...counted.left]);
    } catch (error) {
      if (turn === this.turn) this.say(sentence(error), true);
    }
    if (turn === this.turn) this.busy(false);
  }

  async send(file, name, packed) {
    const body = new FormData();
    body.set("csrfmiddlewaretoken", this.form.elements.csrfmiddlewaretoken.value);
    body.set("brought", file, name);
    if (packed) body.set("packed", "1");
    const answer = await fetch(box.dataset.bring, { method: "POST", body, headers: { Accept: "application/json" } });
    const said = await answer.json().catch(() => null);
    if (answer.ok && said) return said;
    throw new TooMuch(said ? `${said.message} ${said.hint}`.trim() : answer.status === 413 ? "The files are larger than this server takes." : `The server could not take the files (${answer.status}).`);
  }

  show(found, name, left) {
    this.choice.querySelector("input").value = found.key;
    this.choice.querySelector("input").checked = true;
    this.choice.querySelector("b").textContent = name;
    this.choice.querySelector("[data-size]").textContent = `${found.files.toLocaleString("en")} ${found.files === 1 ? "file" : "files"}, ${size(found.size)}`;
    this.choice.hidden = false;
    this.list.replaceChildren(...found.shown.map(({ path }) => Object.assign(document.createElement("li"), { textContent: path })));
    if (found.files > found.shown.length) this.list.append(Object.assign(document.createElement("li"), { textContent: `and ${(found.files - found.shown.length).toLocaleString("en")} more` }));
    this.list.parentElement.hidden = false;
    box.querySelector("[data-keep]").hidden = false;
    this.whole.hidden = !left.some((one) => one !== ".git");
    this.say(`Uploaded ${found.files.toLocaleString("en")} ${found.files === 1 ? "file" : "files"}.${left.length ? ` Left out: ${left.join(", ")}.` : ""}${found.left_out ? ` Left out: ${found.left_out} that belong to SPAK, git or the zip program.` : ""}${found.folder ? ` The files are used without the folder ${found.folder} around them.` : ""}`);
  }

  say(words, wrong = false) {
    this.note.textContent = words;
    this.note.className = wrong ? "message error" : "muted small";
  }

  busy(on) {
    box.setAttribute("aria-busy", String(on));
    for (const button of this.form.querySelectorAll("button:not([type])")) button.disabled = on;
  }
}

function sentence(error) {
  if (error instanceof Unreadable) return `${error.message} changed or went away while it was read. Nothing was uploaded: choose the files again.`;
  if (error instanceof TooMuch) return error.message;
  return "The files could not be uploaded: the server cannot be reached, or the files changed while they were read. Choose them again.";
}

function size(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1048576).toFixed(1)} MB`;
}

if (box) new Files();
document.documentElement.dataset.start = "ready";
