// A campaign, live: whenever a run of the team changes, its page asks for itself again, at most each second.

import { follow } from "./stream.js";

const EACH_MS = 1000;
const part = document.querySelector("[data-live-campaign]");
let timer = 0;

function later() {
  timer ||= setTimeout(() => {
    timer = 0;
    htmx.trigger(part, "news");
  }, EACH_MS);
}

if (part) follow(part.dataset.liveCampaign, null, (message) => { if (message.type === "runs") later(); }, later);
