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

function heard(message) {
  if (message.type === "runs" && !message.whole) later();
  else if (message.type === "closed" && message.code !== 1000) location.reload();  // signed out, or no member any more: it says so
}

if (list) follow(list.dataset.liveList, null, heard, later);
