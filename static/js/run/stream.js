// The stream of a run or a team: a WebSocket that comes again with the last seq seen, and polling where no
// socket opens. Takes an address and a listener, which hears every message, and "connected",
// "away" and "closed" of the line itself; gives nothing back. docs/runs.md has the protocol.

const LAST = [1000, 4401, 4403, 4404];

export function follow(path, after, heard, poll) {
  let last = after, failures = 0, closed = false, socket = null;
  const address = () => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}${last === null ? "" : `?after=${last}`}`;

  function open() {
    if (closed) return;
    socket = new WebSocket(address());
    let first = true;  // a socket that is opened only to be closed with a code is no line
    socket.addEventListener("message", (event) => {
      const message = JSON.parse(event.data);
      if (first) heard({ type: "connected" });
      first = false;
      failures = 0;
      if (message.type === "records" && message.records.length) last = message.records.at(-1).seq;
      if (message.type === "resync") last = message.to - 1;
      if (message.type === "end") closed = true;
      heard(message);
    });
    socket.addEventListener("close", (event) => {
      if (closed) return;
      if (LAST.includes(event.code)) {
        closed = true;
        heard({ type: "closed", code: event.code });
        return;
      }
      failures += 1;
      heard({ type: "away", code: event.code });
      const wait = Math.min(15000, 300 * 2 ** Math.min(failures, 6)) * (0.5 + Math.random());
      if (failures >= 2 && poll) poll();
      setTimeout(open, wait);
    });
  }
  let hidden = false;
  addEventListener("pagehide", () => {
    hidden = !closed;
    closed = true;
    if (socket?.readyState === WebSocket.OPEN) socket.close();
  });
  addEventListener("pageshow", (event) => {  // gone back to, as it was left: it goes on
    if (!event.persisted || !hidden) return;
    hidden = closed = false;
    open();
  });
  open();
}
