// The list of a team's runs, live: when something of it changed, its table is fetched again, at most each
// second, unless somebody is choosing rows.

import { follow } from "./stream.js";

const list = document.querySelector("[data-live-list]");
let timer = 0;

async function again() {
  timer = 0;
  if (list.querySelector("input[name=run]:checked") || list.contains(document.activeElement)) { later(); return; }
  const answer = await fetch(location.href, { headers: { "HX-Request": "true" } });
  if (answer.ok) list.innerHTML = await answer.text();
}
const later = () => { timer ||= setTimeout(again, 1000); };

if (list) follow(list.dataset.liveList, null, (message) => { if (message.type === "runs" && !message.whole) later(); }, later);
