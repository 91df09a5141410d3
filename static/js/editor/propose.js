// Proposing the text as a patch: instead of saving, or because the spec is protected. The draft goes with it.

import { form, toast } from "./dom.js";
import { ask, Offline, sentence, SignedOut } from "./server.js";

export async function propose(config, text, keeper, on) {
  if (text() === config.head_text || text() === on.versionText()) {
    toast("Nothing has changed, so there is nothing to propose.");
    return;
  }
  let made = null;
  const fields = [
    { name: "title", label: "Title", required: true },
    { name: "rationale", label: "Why (optional)", long: true },
  ];
  await form("Propose a change", fields, {
    submit: "Propose",
    text: config.protected ? "This spec is protected: a change becomes a version once it is approved." : "The text becomes a patch that others review. No version is saved yet.",
    check: async (given) => {
      const sent = text();
      try {
        made = await keeper.alone(() => ask(config.urls.propose, { ...given, text: sent, base_version: config.patch?.base_version ?? keeper.base, seen: keeper.seen, patch: config.patch?.number ?? 0 }));
      } catch (error) {
        if (error instanceof Offline || error instanceof SignedOut) {
          keeper.failed(error);
          return `${error.message} Nothing is lost: your text is kept in this browser.`;
        }
        return sentence(error);
      }
      keeper.handed(sent);
      return "";
    },
  });
  if (made) location.href = made.url;
}
