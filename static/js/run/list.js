// The list of a team's runs, live: when something of it changed, its table is fetched again, at most each
// second, unless somebody is choosing rows. It says how many rows are chosen, and asks before it cancels them.

import { released } from "../press.js";
import { Connection } from "./connection.js";
import { Aborted, Requests } from "./requests.js";
import { follow } from "./stream.js";

const EACH_MS = 1000;

function live(list) {
  const connection = new Connection("run-line", list.dataset.login);
  const requests = new Requests();
  let timer = 0, met = false;

  const chosen = () => list.querySelectorAll("input[name=run]:checked").length;

  function mark() {
    const note = list.querySelector("[data-chosen]"), count = chosen();
    if (!note) return;
    note.textContent = count ? `${count} chosen` : "Choose runs of the list";
    list.querySelector("[value=compare]").disabled = count !== 2;
    const cancel = list.querySelector("[value=cancel]");
    if (cancel) cancel.disabled = !count;
  }

  const inHand = () => chosen() || list.contains(document.activeElement);

  async function again() {
    timer = 0;
    if (inHand()) { later(); return; }
    const asked = location.href;
    try {
      const html = await requests.text("list", asked);
      connection.failed(null);
      await released(list);
      if (inHand() || location.href !== asked) later();  // since then a row was chosen, or another filter
      else list.innerHTML = html;
    } catch (error) {
      if (error instanceof Aborted) return;
      connection.failed(error);
      later();
    }
  }
  function later() {
    timer ||= setTimeout(again, EACH_MS);
  }

  // The page was made before its socket was open: a run may have changed in between, and no later message says so.
  function outdated(runs) {
    const row = (run) => list.querySelector(`[data-run="${CSS.escape(run.key)}"]`);
    const newest = runs.find((run) => !run.trial);  // the list leaves the others out
    if (!location.search && newest && !row(newest)) return true;
    return runs.some((run) => {
      const shown = row(run)?.querySelector(".pill")?.dataset.state;
      return shown !== undefined && shown !== run.state;
    });
  }

  function heard(message) {
    if (message.type === "runs") {
      if (met || !message.whole || outdated(message.runs)) later();  // after a reconnection the whole list comes again
      met = true;
    } else if (message.type === "closed" && message.code !== 1000) location.reload();  // signed out, or no member any more: it says so
    else if (message.type === "connected" || message.type === "away") connection.heard(message);
  }

  list.addEventListener("change", mark);
  list.addEventListener("click", (event) => {
    const button = event.target.closest("button[name=do]"), count = chosen();
    if (!button) return;
    const { dataset } = button.form;
    if (button.value !== "cancel") delete dataset.confirm;
    else {
      dataset.confirm = `Cancel ${count === 1 ? "the chosen run" : `the ${count} chosen runs`}? Their records stay; a tool that runs is ended, and its changes are rolled back.`;
      dataset.confirmDo = count === 1 ? "Cancel the run" : `Cancel ${count} runs`;
    }
  });
  new MutationObserver(mark).observe(list, { childList: true });
  addEventListener("pageshow", mark);
  mark();
  follow(list.dataset.liveList, null, heard, later);
}

const list = document.querySelector("[data-live-list]");
if (list) live(list);
