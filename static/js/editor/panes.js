// Panes whose borders can be moved, by pointer and by keys; where they stand is remembered in this browser.

const LIMITS = [15, 85];

function stored(key) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    return {};
  }
}

export function panes(root, key = "spak-editor-panes") {
  const kept = stored(key);
  for (const border of root.querySelectorAll("[role=separator]")) {
    const name = border.dataset.pane;
    const upright = border.getAttribute("aria-orientation") === "vertical";
    const usual = Number(border.getAttribute("aria-valuenow"));
    const set = (percent, keep = true) => {
      const value = Math.round(Math.max(LIMITS[0], Math.min(LIMITS[1], percent)) * 10) / 10;
      root.style.setProperty(`--pane-${name}`, `${value}fr`);
      root.style.setProperty(`--rest-${name}`, `${100 - value}fr`);
      border.setAttribute("aria-valuenow", String(Math.round(value)));
      if (!keep) return;
      kept[name] = value;
      try {
        localStorage.setItem(key, JSON.stringify(kept));
      } catch {
        // A browser that keeps nothing: the panes stand as usual the next time.
      }
    };
    if (typeof kept[name] === "number") set(kept[name], false);
    border.addEventListener("pointerdown", (event) => {
      border.setPointerCapture(event.pointerId);
      border.classList.add("moving");
      event.preventDefault();
    });
    border.addEventListener("pointermove", (event) => {
      if (!border.hasPointerCapture(event.pointerId)) return;
      const bounds = border.parentElement.getBoundingClientRect();
      set(upright ? ((event.clientX - bounds.left) / bounds.width) * 100 : ((event.clientY - bounds.top) / bounds.height) * 100);
    });
    border.addEventListener("pointerup", () => border.classList.remove("moving"));
    border.addEventListener("dblclick", () => set(usual));
    border.addEventListener("keydown", (event) => {
      const now = Number(border.getAttribute("aria-valuenow"));
      const less = upright ? "ArrowLeft" : "ArrowUp";
      const more = upright ? "ArrowRight" : "ArrowDown";
      const next = { [less]: now - 3, [more]: now + 3, Home: LIMITS[0], End: LIMITS[1], Enter: usual }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      set(next);
    });
  }
}
