// A click is lost where the element under a press is replaced before the release. What is drawn anew without
// being asked for waits for `released(place)`: until no pointer is pressed in that place, at most LIMIT_MS, for
// the release over a list of choices is not told to the page.

const LIMIT_MS = 1000;
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

for (const type of ["pointerup", "pointercancel"]) {
  addEventListener(type, ({ pointerId }) => {
    const press = presses.get(pointerId);
    if (press) setTimeout(press.end);  // the click comes before
  }, true);
}

export async function released(place) {
  const here = ({ target }) => place?.contains(target);
  for (let press; (press = [...presses.values()].find(here)); ) await press.ended;
}
