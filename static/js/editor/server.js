// Questions to the server. Each ends in an answer, or in one of three errors that the page treats alike
// everywhere: Refused (with a code and a hint), SignedOut, Offline.

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.message || `The server answered ${status}.`);
    Object.assign(this, { status, code: problem.code ?? "", hint: problem.hint ?? "", problem });
  }
}
export class SignedOut extends Error {}
export class Offline extends Error {}

let token = "";
let tokenUrl = "";

// What an error says, as sentences.
export function sentence({ message, hint }) {
  return [message, hint].filter(Boolean).map((part) => part[0].toUpperCase() + part.slice(1) + (/[.!?]$/.test(part) ? "" : ".")).join(" ");
}

export const csrf = () => token;

export function introduce(config) {
  token = config.csrf;
  tokenUrl = config.urls.token;
}

export async function ask(url, body, { signal = null, patience = 15000, keepalive = false } = {}) {
  try {
    return await once(url, body, signal, patience, keepalive);
  } catch (error) {
    // Someone signed in anew in another tab: the session is good, this page's token is not.
    if (!(error instanceof Refused && error.status === 403 && error.code === "web.csrf")) throw error;
    await renew();
    return once(url, body, signal, patience, keepalive);
  }
}

// A fresh token; tells as well whether the session still holds.
export async function renew() {
  const answer = await once(tokenUrl, null, null, 10000, false);
  token = answer.csrf;
}

async function once(url, body, signal, patience, keepalive) {
  const headers = { Accept: "application/json" };
  if (body !== null) Object.assign(headers, { "Content-Type": "application/json", "X-CSRFToken": token });
  const limit = AbortSignal.timeout(patience);
  let response;
  try {
    response = await fetch(url, {
      method: body === null ? "GET" : "POST",
      headers,
      body: body === null ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      redirect: "manual",
      keepalive,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Offline("The server does not answer.");
  }
  if (response.type === "opaqueredirect" || response.status === 401) throw new SignedOut("You are signed out.");
  const json = (response.headers.get("Content-Type") ?? "").includes("json");
  if (response.status === 403 && !json) throw new Refused(403, { code: "web.csrf", message: "The page is out of date." });
  if (response.status === 502 || response.status === 503 || response.status === 504) throw new Offline("The server does not answer.");
  if (!json) throw new Refused(response.status, {});
  const answer = await response.json();
  if (!response.ok) throw new Refused(response.status, answer);
  if (answer.refused) throw new Refused(response.status, answer.refused);
  return answer;
}
