// Saving a version. The base travels with it; where someone else saved in between nothing is overwritten and
// the way leads to the page that merges.

import { banner, el, find, form, toast, uid } from "./dom.js";
import { ask, csrf, Offline, Refused, sentence, SignedOut } from "./server.js";

// Saves a version; with `run`, an address, the run's form is opened after that.
export async function save(config, text, keeper, on, run = "") {
  if (text() === on.versionText()) {
    toast(`Nothing has changed since version ${keeper.base}.`);
    return;
  }
  const errors = (on.analysis()?.diagnostics ?? []).filter((item) => item.severity === "error").length;
  let stale = null;
  let done = null;
  const title = `Save version ${keeper.base + 1}`;
  const values = await form(run ? `${title} and run it` : title, [{ name: "message", label: "What changed (optional)" }], {
    submit: run ? "Save and run" : "Save version",
    text: errors ? `It has ${errors} error${errors === 1 ? "" : "s"}: it can be saved, but not run until they are fixed.` : "",
    check: async ({ message }) => {
      const sent = text();
      try {
        done = { ...(await keeper.alone(() => ask(config.urls.save, { text: sent, base_version: keeper.base, message, seen: keeper.seen }))), sent };
      } catch (error) {
        if (error instanceof Refused && error.status === 409 && error.code === "web.stale") {
          stale = { ...error.problem, sent, base_version: keeper.base };
          return "";
        }
        if (error instanceof Offline || error instanceof SignedOut) {
          keeper.failed(error);
          return `${error.message} Nothing is lost: your text is kept in this browser.`;
        }
        return sentence(error);
      }
      return "";
    },
  });
  if (!values) return;
  if (stale) {
    await keeper.send();
    conflict(config, stale, stale.sent, values.message);
    return;
  }
  keeper.saved(done.version, done.sent);
  on.saved(done);
  if (run) location.assign(run);
  banner("newer");
  toast(!done.unchanged ? `Version ${done.version} saved.` : `Version ${done.version} already has this text.`, "info", !done.unchanged ? { label: "Compare", run: () => (location.href = `${config.urls.compare}?old=${done.version - 1}&new=${done.version}`) } : null);
}

// The page that merges takes a plain form: it works without this script as well.
function conflict(config, stale, sent, message) {
  const heading = uid("dialog");
  const clean = stale.merge.clean;
  const fields = { csrfmiddlewaretoken: csrf(), text: sent, base_version: String(stale.base_version), message };
  const dialog = el(
    "dialog",
    { class: "editor-dialog", "aria-labelledby": heading },
    el(
      "form",
      { method: "post", action: config.urls.save },
      el("h2", { id: heading }, "Someone else saved first"),
      el("p", {}, `${stale.message} Nothing was overwritten, and your text is kept as your draft.`),
      el("p", {}, clean ? "Your changes and theirs can be combined without a conflict. Merge opens the result for you to review and save." : `${stale.merge.conflicts} place${stale.merge.conflicts === 1 ? "" : "s"} changed on both sides: choose what stays.`),
      Object.entries(fields).map(([name, value]) => {
        const field = el("textarea", { name, hidden: true });
        field.value = value;
        return field;
      }),
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Keep editing"),
        el("button", { type: "submit", class: "button primary" }, "Merge"),
      ),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  find("button.primary", dialog).focus();
}
