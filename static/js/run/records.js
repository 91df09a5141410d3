// Rows of the records tab, made as the server makes them, from what the stream says of each record.

import { byId, span } from "./dom.js";

const MOST = 200, MOST_OLDER = 2000;

// Puts the newer ones of these records on top of the list; who reads further down keeps the place.
export function prepend(list, records, page) {
  const newest = Number(list.firstElementChild?.dataset.seq ?? -1);
  const fresh = records.filter((record) => record.seq > newest).slice(-MOST).reverse().map((record) => row(record, page));
  const first = list.firstElementChild, top = first?.getBoundingClientRect().top;
  list.prepend(...fresh);
  while (list.children.length > (list.dataset.older ? MOST_OLDER : MOST)) list.lastElementChild.remove();
  if (top < 60 && first.isConnected) scrollBy({ top: first.getBoundingClientRect().top - top, behavior: "instant" });
}

// Takes in the older rows of a page of the list, as far as they are not there and the list is not too long;
// the link leads on from there.
export function append(list, link, html) {
  const fresh = new DOMParser().parseFromString(html, "text/html"), next = fresh.querySelector("a[rel=next]");
  const oldest = Number(list.lastElementChild?.dataset.seq ?? Infinity);
  list.append(...[...fresh.querySelectorAll("#records > li")].filter((item) => Number(item.dataset.seq) < oldest));
  list.dataset.older = "true";
  if (!next) link.remove();
  else link.href = next.getAttribute("href");
  return next !== null && list.children.length < MOST_OLDER;
}

// Marks the record whose address this is, in the list and in the address of the page.
export function mark(list, address) {
  const seq = address.match(/\/r\/(\d+)\/$/)?.[1];
  for (const link of list?.querySelectorAll("a[aria-current]") ?? []) link.removeAttribute("aria-current");
  list?.querySelector(`li[data-seq="${seq}"] a`)?.setAttribute("aria-current", "true");
  const url = new URL(location.href);
  url.searchParams.set("tab", "records");
  url.searchParams.set("seq", seq);
  history.replaceState(null, "", url);
}

function row(record, page) {
  const item = document.createElement("li"), link = document.createElement("a");
  item.className = record.authority;
  item.dataset.seq = record.seq;
  link.href = `${page}r/${record.seq}/`;
  link.dataset.into = "#record";
  link.append(span("seq", record.seq), seal(record), span("kind", record.kind), where(record), span("text-line", record.text));
  item.append(link);
  return item;
}

function seal(record) {
  const made = span("seal", ""), shown = byId("records").querySelector(".commit .seal .icon");
  if (record.authority === "commit" && shown) made.append(shown.cloneNode(true));
  made.append(span("visually-hidden", record.authority));
  return made;
}

function where(record) {
  const made = span("where", "");
  made.append(span("", record.task));
  if (record.step) made.append(span("", `/${record.step}`));
  return made;
}
