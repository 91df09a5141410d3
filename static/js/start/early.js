// Takes what is dropped on the form that starts a run before start.js has loaded: the browser would open the
// file in place of the page. Loaded by itself in the head of the page, before anything is shown; start.js ends it.

(() => {
  const ended = new AbortController();
  const early = { items: null, end: () => ended.abort() };
  const listen = (name, act) => document.addEventListener(name, (event) => {
    const zone = event.target.closest?.("#run-files .drop");
    if (!zone) return;
    event.preventDefault();
    act(zone, event);
  }, { signal: ended.signal });
  listen("dragover", (zone) => zone.classList.add("over"));
  listen("dragleave", (zone) => zone.classList.remove("over"));
  listen("drop", (zone, event) => {
    zone.classList.remove("over");
    early.items = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    document.querySelector("#run-files [data-note]").textContent = "The page is still loading. The files are taken as soon as it is ready.";
  });
  window.early = early;
})();
