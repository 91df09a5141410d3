// A click is lost where the element under a press is replaced before the release. What is drawn anew without
// being asked for waits for `released(place)`: until no pointer is pressed in that place. The release over a list
// of choices is not told to the page: there the choice, a key, or a pointer that moves without a button ends the
// press, at the latest LIMIT_MS later. A busy machine takes seconds between press and release.

const LIMIT_MS = 10_000;
const presses = new Map(); // By the pointer.

addEventListener("pointerdown", ({ pointerId, target }) => {
  presses.get(pointerId)?.end();
  const press = { target };
  press.ended = new Promise((resolve) => {
    press.end = () => {
      if (presses.get(pointerId) === press) presses.delete(pointerId);
      resolve();
    };
  });
  presses.set(pointerId, press);
  setTimeout(press.end, LIMIT_MS);
}, true);

const end = (press) => press && setTimeout(press.end);  // the click comes before

for (const type of ["pointerup", "pointercancel"]) addEventListener(type, ({ pointerId }) => end(presses.get(pointerId)), true);
addEventListener("pointermove", ({ pointerId, buttons }) => buttons || end(presses.get(pointerId)), true);
addEventListener("change", ({ target }) => presses.forEach((press) => target.contains(press.target) && end(press)), true);
addEventListener("keydown", () => presses.forEach(end), true);

export async function released(place) {
  const here = ({ target }) => place?.contains(target);
  for (let press; (press = [...presses.values()].find(here)); ) await press.ended;
}
