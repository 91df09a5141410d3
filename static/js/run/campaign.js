// A campaign, live: whenever a run of the team changes, its page asks for itself again, at most each second.

import { paced } from "./requests.js";
import { follow } from "./stream.js";

const EACH_MS = 1000;
const part = document.querySelector("[data-live-campaign]");

if (part) {
  const ask = paced(async () => htmx.trigger(part, "news"), () => EACH_MS, () => {});
  follow(part.dataset.liveCampaign, null, (message) => { if (message.type === "runs") ask(); }, ask);
}
