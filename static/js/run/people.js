// Who else looks at this page: initials and a sentence.

import { fill, span } from "./dom.js";

export function showPeople(message, user) {
  const others = message.people.filter((person) => String(person.id) !== user);
  const count = message.count - (message.people.length - others.length);
  if (!others.length) {
    fill("run-people");
    return;
  }
  const names = others.slice(0, 3).map((person) => person.name).join(", ");
  const more = count > 3 ? ` and ${count - 3} more` : "";
  fill("run-people", ...others.slice(0, 5).map(badge), `${names}${more} ${count === 1 ? "is" : "are"} looking too`);
}

function badge(person) {
  const made = span("person", person.name.slice(0, 2).toUpperCase());
  made.setAttribute("aria-hidden", "true");
  made.title = person.name;
  return made;
}
