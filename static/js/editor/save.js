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
  let stale = null, widens = null;
  let done = null;
  const title = `Save version ${keeper.base + 1}`;
  const values = await form(run ? `${title} and run it` : title, [{ name: "message", label: "What changed (optional)" }], {
    submit: run ? "Save and run" : "Save version",
    text: errors ? `It has ${errors} error${errors === 1 ? "" : "s"}: it can be saved, but not run until they are fixed.` : "",
    check: async ({ message }) => {
      const now = text();
      try {
        done = { ...(await keeper.alone(() => ask(config.urls.save, { text: now, base_version: keeper.base, message, seen: keeper.seen }))), sent: now };
      } catch (error) {
        if (error instanceof Refused && error.status === 409 && error.code === "web.stale") {
          stale = { ...error.problem, sent: now, base_version: keeper.base };
          return "";
        }
        if (error instanceof Refused && error.code === "web.widens") {
          widens = { text: now, base_version: String(keeper.base) };
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
  if (widens) {
    await keeper.send();
    sent(config, { ...widens, message: values.message }).requestSubmit();
    return;
  }
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

// A plain form that saves: the page that answers merges, or shows what the text widens.
function sent(config, fields, ...parts) {
  const form = el("form", { method: "post", action: config.urls.save }, ...parts);
  for (const [name, value] of Object.entries({ csrfmiddlewaretoken: csrf(), ...fields })) {
    const field = el("textarea", { name, hidden: true });
    field.value = value;
    form.append(field);
  }
  if (!parts.length) document.body.append(form);
  return form;
}

// The page that merges takes a plain form: it works without this script as well.
function conflict(config, stale, text, message) {
  const heading = uid("dialog");
  const clean = stale.merge.clean;
  const dialog = el(
    "dialog",
    { class: "editor-dialog", "aria-labelledby": heading },
    sent(
      config,
      { text, base_version: String(stale.base_version), message },
      el("h2", { id: heading }, "Someone else saved first"),
      el("p", {}, `${stale.message} Nothing was overwritten, and your text is kept as your draft.`),
      el("p", {}, clean ? "Your changes and theirs can be combined without a conflict. Merge opens the result for you to review and save." : `${stale.merge.conflicts} place${stale.merge.conflicts === 1 ? "" : "s"} changed on both sides: choose what stays.`),
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
