// A click is lost where the element under a press is replaced before the release. What is drawn anew without
// being asked for waits for `released(place)`: until no pointer is pressed in that place, at most LIMIT_MS, for
// the release over a list of choices is not told to the page.

const LIMIT_MS = 1000;
let pressed = null, release = () => {}, ended = Promise.resolve();

addEventListener("pointerdown", ({ target }) => {
  release();
  pressed = target;
  ended = new Promise((resolve) => {
    const limit = setTimeout(() => release(), LIMIT_MS);
    release = () => {
      clearTimeout(limit);
      pressed = null;
      resolve();
    };
  });
}, true);

for (const type of ["pointerup", "pointercancel"]) {
  addEventListener(type, () => {
    const then = release;
    setTimeout(then);  // the click comes before
  }, true);
}

export async function released(place) {
  while (pressed && place?.contains(pressed)) await ended;
}
