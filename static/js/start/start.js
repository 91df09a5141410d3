// The form that starts a run: files are dropped or chosen, packed (zip.js), sent to the server at once, and
// listed with what the server found. The form then names them by key, so that an error in another field does
// not lose them. Without this script the form itself brings a zip or some files.

import { Counted, fromDrop, fromInput, TooMuch } from "./chosen.js";
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
      const items = event.dataTransfer.items;
      this.bring((counted) => fromDrop(items, counted));
    });
  }

  chosen(input) {
    if (!input.files.length) return;
    const files = [...input.files];
    input.value = "";
    this.bring(async (counted) => fromInput(files, counted));
  }

  async bring(collect) {
    const turn = ++this.turn, counted = new Counted(Number(box.dataset.mostFiles), Number(box.dataset.mostBytes));
    this.busy(true);
    try {
      this.say("Reading the files.");
      const name = await collect(counted);
      if (!counted.entries.length) throw new TooMuch("There is no file in it. Choose files, a folder or a zip.");
      const only = counted.entries.length === 1 && /\.zip$/i.test(name) ? counted.entries[0].file : null;
      const file = only ?? (await pack(counted.entries, (done) => { if (turn === this.turn) this.say(`Packing: ${done} of ${counted.entries.length} files.`); }));
      if (turn !== this.turn) return;
      this.say("Sending the files.");
      const found = await this.send(file, only ? name : `${name}.zip`, !only);
      if (turn === this.turn) this.show(found, only ? name : name.replace(/\.zip$/, ""));
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

  show(found, name) {
    this.choice.querySelector("input").value = found.key;
    this.choice.querySelector("input").checked = true;
    this.choice.querySelector("b").textContent = name;
    this.choice.querySelector("[data-size]").textContent = `${found.files.toLocaleString("en")} ${found.files === 1 ? "file" : "files"}, ${size(found.size)}`;
    this.choice.hidden = false;
    this.list.replaceChildren(...found.shown.map(({ path }) => Object.assign(document.createElement("li"), { textContent: path })));
    if (found.files > found.shown.length) this.list.append(Object.assign(document.createElement("li"), { textContent: `and ${(found.files - found.shown.length).toLocaleString("en")} more` }));
    this.list.parentElement.hidden = false;
    box.querySelector("[data-keep]").hidden = false;
    this.say(`The server has ${found.files === 1 ? "the file" : `all ${found.files.toLocaleString("en")} files`}.${found.left_out ? ` ${found.left_out} were left out: they are no part of the files.` : ""}${found.folder ? ` The folder ${found.folder} around them was left out.` : ""}`);
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
  if (error instanceof Unreadable) return `${error.message} changed or went away while it was read. Nothing was sent: choose the files again.`;
  if (error instanceof TooMuch) return error.message;
  return "The files could not be sent: the server cannot be reached, or the files changed while they were read. Choose them again.";
}

function size(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1048576).toFixed(1)} MB`;
}

if (box) new Files();
document.documentElement.dataset.start = "ready";
