// The page of the API: opens the operation that the address names, and tries those that only read. A request goes
// to this host with the session of who looks, as a program's would with a token; a stream is shown as it comes until
// it is stopped or LONGEST is reached.

const LONGEST = 200_000;

const opened = () => {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named?.matches("details.op")) named.open = true;
};
addEventListener("hashchange", opened);
opened();

for (const form of document.querySelectorAll("form.try")) {
  form.hidden = false;
  let running = null;
  const output = form.querySelector(".try-answer");
  const stop = form.querySelector("[data-stop]");
  const [status, headers, body] = ["status", "headers", "body"].map((name) => output.querySelector(`[data-${name}]`));
  stop.addEventListener("click", () => running?.abort());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    running?.abort();
    const mine = running = new AbortController();
    output.hidden = stop.hidden = false;
    [status.textContent, headers.textContent, body.textContent] = ["Asking…", "", ""];
    try {
      const answer = await fetch(address(form), { signal: mine.signal, cache: "no-store" });
      status.textContent = `${answer.status} ${answer.statusText}`.trim();
      headers.textContent = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
      await read(answer, body);
    } catch (why) {
      if (why.name !== "AbortError") status.textContent = "No answer: the connection failed";
      else if (running === mine) status.textContent += " (stopped)";
    }
    if (running === mine) stop.hidden = true;
  });
}

function address(form) {
  const values = new FormData(form);
  const path = form.dataset.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values.get(`path.${name}`)));
  const query = new URLSearchParams();
  for (const [name, value] of values) if (name.startsWith("query.") && value !== "") query.set(name.slice(6), value);
  return query.size ? `${path}?${query}` : path;
}

async function read(answer, body) {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += value;
    body.textContent = text.slice(0, LONGEST);
    if (text.length > LONGEST) {
      await reader.cancel();
      body.textContent += "\n… (more is not shown)";
      return;
    }
  }
  if (/json/.test(answer.headers.get("Content-Type") ?? "")) {
    try { body.textContent = JSON.stringify(JSON.parse(text), null, 2).slice(0, LONGEST); } catch { /* as it came */ }
  }
}
