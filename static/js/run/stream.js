// The stream of a run or a team: a WebSocket that is opened again with the last seq seen, and polling where no
// socket opens. Takes an address and a listener, which hears every message, and "connected", "away" and
// "closed" of the connection itself; gives nothing back. docs/runs.md has the protocol.
//
// A cut network closes no socket, and a suspended laptop closes none either: a visible page that has heard
// nothing for QUIET_MS asks with "ping", and takes the connection for cut when no answer comes in ANSWER_MS.

const LAST = [1000, 4401, 4403, 4404];
const QUIET_MS = 2000, ANSWER_MS = 1800, OPEN_MS = 3800, LOOK_MS = 500;
const FIRST_MS = 300, MOST_MS = 15000;

class Follower {
  constructor(path, after, heard, poll) {
    Object.assign(this, { path, heard, poll, last: after, failures: 0, closed: false, hidden: false, socket: null, timer: 0, away: false });
    this.heardAt = this.askedAt = 0;
    setInterval(() => this.look(), LOOK_MS);
    addEventListener("offline", () => this.lost(0));
    addEventListener("online", () => this.retry());
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", (event) => this.comeBack(event));
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.look(); });
    this.open();
  }

  get address() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    return `${scheme}://${location.host}${this.path}${this.last === null ? "" : `?after=${this.last}`}`;
  }

  open() {
    if (this.closed || this.socket) return;
    const socket = this.socket = new WebSocket(this.address);
    this.heardAt = performance.now();
    this.askedAt = 0;
    let first = true;  // a socket that is opened only to be closed with a code is no connection
    socket.addEventListener("message", (event) => {
      if (socket !== this.socket) return;
      const message = JSON.parse(event.data);
      this.heardAt = performance.now();
      this.askedAt = 0;
      if (first) {
        this.away = false;
        this.heard({ type: "connected" });
      }
      first = false;
      this.failures = 0;
      this.took(message);
      this.heard(message);
    });
    socket.addEventListener("close", (event) => { if (socket === this.socket) this.lost(event.code); });
  }

  took(message) {
    if (message.type === "records" && message.records.length) this.last = message.records.at(-1).seq;
    if (message.type === "resync") this.last = message.to - 1;
    if (message.type === "end") this.closed = true;
  }

  look() {
    if (this.closed || document.hidden || !this.socket) return;
    const now = performance.now(), quiet = now - this.heardAt;
    if (this.socket.readyState === WebSocket.OPEN && !this.askedAt && quiet > QUIET_MS) {
      this.askedAt = now;
      this.socket.send("ping");
    } else if (this.askedAt ? now - this.askedAt > ANSWER_MS : this.socket.readyState === WebSocket.CONNECTING && quiet > OPEN_MS) this.lost(0);
  }

  // The connection is gone, as the socket says with a code, or as we think (0).
  lost(code) {
    if (this.closed) return;
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    if (LAST.includes(code)) {
      this.closed = true;
      this.heard({ type: "closed", code });
      return;
    }
    this.failures += 1;
    if (!this.away || code) this.heard({ type: "away", code });
    this.away = true;
    const wait = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(this.failures, 6)) * (0.5 + Math.random());
    if (this.failures >= 2) this.poll?.();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), wait);
  }

  retry() {
    clearTimeout(this.timer);
    this.failures = 0;
    this.open();
  }

  leave() {
    this.hidden = !this.closed;
    this.closed = true;
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    if (socket?.readyState === WebSocket.OPEN) socket.close();
  }

  comeBack(event) {  // gone back to, as it was left: it goes on
    if (!event.persisted || !this.hidden) return;
    this.hidden = this.closed = false;
    this.open();
  }
}

export function follow(path, after, heard, poll) {
  new Follower(path, after, heard, poll);
}
