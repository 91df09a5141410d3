// Requests for parts of the page. Each has a name: a new request aborts the one before it of the same name, so
// that an old answer never overwrites a newer one. Takes addresses, gives HTML or JSON as text. A request that
// fails throws Failed, whose message is a sentence for people; one that was aborted throws Aborted.

const LIMIT_MS = 30000;

export class Aborted extends Error {}

export class Failed extends Error {}

export class Requests {
  constructor() {
    this.running = new Map();
  }

  async text(name, address, options = {}) {
    this.abort(name);
    const abort = new AbortController();
    this.running.set(name, abort);
    const limit = setTimeout(() => abort.abort(new Failed("The server did not answer within 30 seconds.")), LIMIT_MS);
    try {
      const answer = await fetch(address, { ...options, signal: abort.signal, headers: { "HX-Request": "true", ...options.headers } });
      if (!answer.ok) throw new Failed(sentence(answer.status));
      return await answer.text();
    } catch (error) {
      if (abort.signal.aborted) throw abort.signal.reason;
      throw error instanceof Failed ? error : new Failed("The server cannot be reached.");
    } finally {
      clearTimeout(limit);
      if (this.running.get(name) === abort) this.running.delete(name);
    }
  }

  abort(name) {
    this.running.get(name)?.abort(new Aborted(name));
    this.running.delete(name);
  }
}

function sentence(status) {
  if (status === 401 || status === 403) return "You have no access: you are signed out, or no longer a member of the team.";
  if (status === 404 || status === 410) return "This no longer exists.";
  if (status === 429) return "Too many requests. Wait a moment.";
  return `The server reported an error (${status}).`;
}

// Calls `work` at once after a pause, else `each()` milliseconds after its last end; calls that come while it
// runs become one more. `failed(error)` hears what went wrong, `failed(null)` that it went well.
export function paced(work, each, failed) {
  let timer = 0, running = false, again = false, ended = -Infinity;
  async function go() {
    timer = 0;
    running = true;
    try {
      await work();
      failed(null);
    } catch (error) {
      if (!(error instanceof Aborted)) failed(error);
    }
    running = false;
    ended = performance.now();
    if (again) {
      again = false;
      call();
    }
  }
  function call() {
    if (running) again = true;
    else {
      clearTimeout(timer);  // `each()` may have become shorter
      timer = setTimeout(go, ended + each() - performance.now());
    }
  }
  return call;
}
