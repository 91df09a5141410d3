// Who else has this spec open, and whether someone saved it: hints by WebSocket, never needed to be right.

import { banner, el } from "./dom.js";

const AGAIN = [1000, 3000, 10000, 30000];

export function presence(config, place, on) {
  let tries = 0;
  let socket = null;
  const show = (people) => {
    const others = people.filter((person) => person.id !== config.user.id);
    place.hidden = !others.length;
    if (!others.length) return place.replaceChildren();
    const names = others.map((person) => person.name).join(", ");
    return place.replaceChildren(
      ...others.slice(0, 4).map((person) => el("span", { class: "person", title: person.name, "aria-hidden": "true" }, person.name.slice(0, 2).toUpperCase())),
      el("span", { class: "words" }, others.length === 1 ? `${names} is here too` : `${others.length} others are here: ${names}`),
    );
  };
  const connect = () => {
    const url = new URL(config.urls.presence, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    socket = new WebSocket(url);
    socket.onopen = () => (tries = 0);
    socket.onmessage = ({ data }) => {
      const news = JSON.parse(data);
      if (news.type === "people") show(news.people);
      else if (news.type === "saved") on.saved(news);
    };
    socket.onclose = (event) => {
      show([]);
      if (event.code === 4403 || event.code === 4401 || event.code === 4404) return;
      setTimeout(connect, AGAIN[Math.min(tries++, AGAIN.length - 1)]);
    };
  };
  if (config.urls.presence) connect();
  addEventListener("pagehide", () => {
    if (socket) socket.onclose = null;
    socket?.close();
  });
}

export function announceVersion(news, config, dirty) {
  const open = { label: "See what changed", href: `${config.urls.compare}?old=${news.base}&new=${news.version}` };
  const rest = dirty ? "Your text stays as it is; saving will merge both." : "Load it to go on from there.";
  banner("newer", `${news.by} saved version ${news.version}. ${rest}`, open, ...(dirty ? [] : [{ label: "Load it", run: () => location.reload() }]));
}
