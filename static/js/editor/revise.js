// Saving a patch that is open in the editor: its next revision. Where somebody made another one in between
// nothing is written, and a banner offers both changes in one text where they fit.

import { banner, form, toast } from "./dom.js";
import { ask, Offline, Refused, sentence, SignedOut } from "./server.js";

export async function revise(config, text, keeper, on) {
  if (text() === on.versionText()) {
    toast("Nothing has changed since the newest revision.");
    return;
  }
  let made = null;
  let newer = null;
  await form(`Revise patch ${config.patch.number}`, [{ name: "why", label: "What changed (optional)" }], {
    submit: "Save revision",
    text: "The checks run again. Approvals fall unless only the layout of the text changes.",
    check: async (given) => {
      const sent = text();
      try {
        made = await keeper.alone(() => ask(config.patch.revise, { ...given, text: sent, revision: keeper.base, seen: keeper.seen }));
      } catch (error) {
        if (error instanceof Refused && error.code === "web.patch_moved") {
          newer = error.problem;
          return "";
        }
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
  else if (newer) announceRevision(config, keeper, newer, on);
}

// `joined` is the person's text with what the newer revision changed; null where both changed the same.
export function announceRevision(config, keeper, { revision, by, joined = undefined }, on) {
  const look = { label: "See what changed", href: `${config.patch.url}?since=${keeper.base}#text` };
  const go = (text) => {
    keeper.base = revision;
    if (text !== null) on.replace(text);
    banner("newer");
  };
  const words = `${by} made revision ${revision} in between.`;
  if (joined === undefined) banner("newer", `${words} Saving offers to join both.`, look);
  else if (joined === null) banner("newer", `${words} Both changed the same task. Take over what you want to keep of it, then save your text in its place.`, look, { label: "Save mine in its place", run: () => go(null) });
  else banner("newer", `${words} Both changes fit together.`, look, { label: "Take both", run: () => go(joined) });
}
