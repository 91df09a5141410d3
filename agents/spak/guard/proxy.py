"""The only way out of a guarded agent's sandbox: requests to its model, in the formats of Anthropic and
OpenAI.

Takes a session, the socket that listens inside, and where each provider is. A request ends the agent's
turn: what it changed is kept or taken back first. Then it is proposed, without secrets, and sent with the
person's key where it is permitted; the answer streams to the agent unchanged and is recorded without
secrets. Tunnels to hosts are `spak.guard.tunnels`; other requests are refused. It decides nothing: the
session's run does.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import unquote, urlsplit

from spak import __version__, canon
from spak.cancel import AnyOf, Cancelled, apart, check
from spak.costs.prices import Prices
from spak.errors import UsageError, UserError
from spak.guard import wire
from spak.guard.inside_hooks import InsideHooks
from spak.guard.offers import Tools
from spak.guard.session import Session
from spak.guard.sign_in import OAUTH, SignIn, sign_in
from spak.guard.tunnels import Tunnels
from spak.mcp.sdk_server import OverHttp
from spak.ports import Call, Redacting, ToolResult
from spak.secrets.secret import Secret
from spak.tools import results
from spak.tools.outside import MOST_REQUEST

if TYPE_CHECKING:
    import httpx

Provider = Literal["anthropic", "openai"]
SILENCE_S, CONNECT_S = 600.0, 20.0
MOST_ANSWER = 64 << 20
MOST_CONNECTIONS = 256
MOST_PATH = 500
LARGE, MOST_LARGE = 1 << 20, 8
"""Bytes of a request that is large, and how many of those are kept at once; further ones wait."""
_OWN = frozenset(
    """
    authorization x-api-key cookie proxy-authorization proxy-connection connection te host content-length
    accept-encoding transfer-encoding expect upgrade
    """.split()  # noqa: SIM905
)
"""Headers of the agent that are not passed on."""
MCP, HOOK = "/mcp", "/hook"
"""Where our tools are; where a hook asks as Claude Code does, with `/text` for an answer in words."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_BACK = ("content-type", "request-id", "x-request-id", "retry-after")


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where a provider is, and the key that goes there."""

    base_url: str
    key: Secret | None = None
    agent: SignIn | None = None
    """In the place of a key: the agent's own."""

    def secret(self) -> Secret | None:
        """What goes there now. Raises: UsageError `guard.sign_in`."""
        return self.key or (None if self.agent is None else self.agent.token())

    def refuses(self, path: str) -> bool:
        """Whether that address is none of its models: a sign-in is good for more of an account than a key."""
        return self.key is None and self.agent is not None and not _OF_MODELS.fullmatch(path)

    def headers(self, provider: Provider, secret: Secret | None, beta: str = "") -> dict[str, str]:
        """That as the provider wants it; `beta` is what the agent says in `anthropic-beta`."""
        if secret is None:
            return {}
        if provider == "anthropic" and self.key is not None:
            return {"x-api-key": secret.reveal()}
        found = {"authorization": f"Bearer {secret.reveal()}"}
        if provider == "anthropic":
            found["anthropic-beta"] = beta if OAUTH in beta.split(",") else f"{beta},{OAUTH}".strip(",")
        return found


_OF_MODELS = re.compile(
    r"(v1/)?(messages(/count_tokens)?|chat/completions|responses|models(/[\w.:-]+)?)(\?.*)?"
)
"""Where an agent's own sign-in is sent."""
_OWN_MODELS: Mapping[str, Provider] = {"claude": "anthropic", "codex": "openai"}


def upstreams(
    variables: Mapping[str, str], secrets: Mapping[str, Secret] = MappingProxyType({}), agent: str = ""
) -> dict[Provider, Upstream]:
    """Where the models are, with the person's keys, by the environment: ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY
    and the same of OPENAI; a key that is not there is the secret of that name, or else the sign-in of the
    agent of that name.

    Raises: UsageError `guard.address` for what would send a key unencrypted, `guard.sign_in`."""
    usual: Mapping[Provider, str] = {
        "anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1",
    }  # fmt: skip
    found: dict[Provider, Upstream] = {}
    for name, address in usual.items():
        url = variables.get(f"{name.upper()}_BASE_URL") or address
        named = f"{name.upper()}_API_KEY"
        key = Secret(variables[named]) if variables.get(named) else secrets.get(named)
        parts = urlsplit(url)
        plain = parts.scheme == "http" and parts.hostname in _LOOPBACK
        if not parts.hostname or not (parts.scheme == "https" or plain):
            what = f"{name.upper()}_BASE_URL is {url!a}"
            raise UsageError("guard.address", what, "an https:// address, or http:// of this machine")
        own = sign_in(agent, variables) if key is None and _OWN_MODELS.get(agent) == name else None
        found[name] = Upstream(url.rstrip("/"), key, own)
        found[name].secret()  # one that cannot be used is an error before anything runs
    return found


class Proxy:
    """The listener of one session, in threads."""

    def __init__(
        self,
        session: Session,
        listener: socket.socket,
        models: Mapping[Provider, Upstream],
        redactor: Redacting,
        prices: Prices,
    ) -> None:
        self.session, self.models, self.redactor, self.prices = session, models, redactor, prices
        self.hooks: InsideHooks | None = None
        self._known: set[Secret] = set()
        for one in models.values():
            self.know(one.secret())
        self._clients: dict[Provider, httpx.Client] = {}
        self._tools: OverHttp | None = None
        self._making = threading.Lock()
        self.tunnels = Tunnels(session)
        self._server = _Server(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket, self._server.proxy = listener, self

    def client(self, provider: Provider) -> httpx.Client:
        """The connections to a provider, kept for the session."""
        import httpx

        if provider not in self._clients:
            direct = urlsplit(self.models[provider].base_url).hostname in _LOOPBACK
            timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
            self._clients[provider] = httpx.Client(
                timeout=timeout, follow_redirects=False, trust_env=not direct
            )
        return self._clients[provider]

    def know(self, secret: Secret | None) -> None:
        """A key that is sent from now on: no record and no request holds it."""
        if secret is not None and secret not in self._known:
            self._known.add(secret)
            self.redactor = self.redactor.also(secret.reveal())
            performer = self.session.run.performer
            guard = performer.secret_guard
            guard.know(secret.reveal())
            performer.host = guard.host

    def tools(self) -> OverHttp:
        """Our tools for the agent, by MCP; made when it asks first."""
        with self._making:
            if self._tools is None:
                self._tools = OverHttp("spak", __version__, Tools(self.session))
            return self._tools

    @contextmanager
    def serving(self) -> Iterator[None]:
        """While entered it answers; afterwards nobody does."""
        thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            thread.join()
            self.tunnels.close()
            for client in self._clients.values():
                client.close()
            if self._tools is not None:
                self._tools.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: Proxy

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._free = threading.Semaphore(MOST_CONNECTIONS)
        self.large = threading.Semaphore(MOST_LARGE)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether it is answered; not while too many are."""
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer on one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The agent broke off; there is nobody to tell."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body waits 40 ms for the agent to acknowledge the headers
    timeout = 120.0
    """Seconds that an agent may neither send nor take anything."""
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written to the terminal of whoever works there."""

    def parse_request(self) -> bool:
        """As it comes; what an agent sends to this very port by way of the proxy is asked of it here."""
        read = super().parse_request()
        if read:
            port = self.server.socket.getsockname()[1]
            for own in (f"http://127.0.0.1:{port}/", f"http://localhost:{port}/"):
                self.path = f"/{self.path.removeprefix(own)}" if self.path.startswith(own) else self.path
        return read

    def do_CONNECT(self) -> None:
        host, _, port = self.path.partition(":")
        if host in _LOOPBACK and port == str(self.server.socket.getsockname()[1]):
            self.close_connection = False  # the requests that follow on this connection are for us
            self.send_response_only(HTTPStatus.OK, "Connection established")
            self.end_headers()
            return
        self.server.proxy.tunnels.serve(self)

    def do_HEAD(self) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        if self.path == MCP:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "ask by POST")
            return
        with self.server.proxy.session.talk:
            self._ask(b"")

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MOST_REQUEST:
            self.close_connection = True
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request has no length, or is too large")
            return
        with self.server.large if int(length) > LARGE else nullcontext():
            body = self.rfile.read(int(length))  # however slowly it comes, nobody else waits for it
            if self.path == MCP:
                self._tools(body)
                return
            if self.path in (HOOK, f"{HOOK}/text"):
                self._hook(body)
                return
            with self.server.proxy.session.talk:
                self._ask(body)

    def _tools(self, body: bytes) -> None:
        reply = self.server.proxy.tools().answer("POST", MCP, dict(self.headers.items()), body)
        with suppress(OSError):
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if "content-length" not in reply.headers:
                self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

    def _hook(self, body: bytes) -> None:
        hooks = self.server.proxy.hooks
        why = "" if hooks is None else hooks.answer(body)
        said = {"permissionDecision": "deny", "permissionDecisionReason": why}
        if why and self.path == HOOK:
            why = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}})
        self._write(HTTPStatus.OK, why.encode("utf-8", "backslashreplace"))

    def _ask(self, body: bytes) -> None:
        proxy, (first, _, rest) = self.server.proxy, self.path.removeprefix("/").partition("/")
        odd = ".." in unquote(unquote(rest)) or len(rest) >= MOST_PATH or not self.path.isascii()
        if first not in proxy.models or odd or not self.path.isprintable():
            plain = "; http:// is not passed on, https:// may be" if self.path.startswith("http://") else ""
            what = f"the guard sends to models only, not to {self.path[:200]}{plain}"
            self._refuse(HTTPStatus.NOT_FOUND, what)
            return
        provider = cast(Provider, first)
        if proxy.models[provider].refuses(rest):
            self._refuse(HTTPStatus.FORBIDDEN, "a sign-in is sent to models only; an API key goes anywhere")
            return
        try:
            value = json.loads(body) if body else None
            proxy.session.turn()
            if value is not None:
                value = proxy.redactor.value(_told(value, proxy.session.told()))
            text = "" if value is None else json.dumps(value, ensure_ascii=False)
            text.encode()
            model = value.get("model") if isinstance(value, dict) else None
            args = {"provider": provider, "path": f"/{rest}", "request": text}
            args["model"] = model[:200] if isinstance(model, str) else ""
            done = proxy.session.propose("model_request", args, partial(self._send, provider, rest, text))
        except (ValueError, RecursionError):
            self._refuse(HTTPStatus.BAD_REQUEST, "the request is not JSON")
        except UserError as error:
            self._refuse(HTTPStatus.FORBIDDEN, f"{error.message} [{error.code}]")
        else:
            if not done.ran:
                self._refuse(HTTPStatus.FORBIDDEN, done.said)

    def _send(self, provider: Provider, rest: str, text: str, call: Call) -> ToolResult:
        """Send it and stream the answer to the agent; in the run's thread. Once the agent has ended nobody
        waits for the answer: a model that says nothing would hold up the end of the session."""
        self._heard = bytearray()
        tokens = [self.server.proxy.session.gone, *([call.cancel] if call.cancel else [])]
        try:
            return apart(partial(self._sent, provider, rest, text), AnyOf(tokens))
        except Cancelled:
            check(call.cancel)
            return self._broken("the agent ended before its model had answered")

    def _broken(self, what: str) -> ToolResult:
        """What came of an answer before it broke off, and why, as the run records it."""
        failed = results.failed("guard.upstream", what)
        if not self._heard:
            return failed
        done = self._counted(bytes(self._heard) + b"\n" + failed.output, HTTPStatus.OK)
        return replace(done, exit=1, key=failed.key, diagnostics=failed.diagnostics)

    def _sent(self, provider: Provider, rest: str, text: str) -> ToolResult:
        import httpx

        proxy = self.server.proxy
        target = proxy.models[provider]
        path = rest.removeprefix("v1/") if provider == "openai" else rest
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in _OWN}
        try:
            secret = target.secret()
            proxy.know(secret)
        except UserError as error:
            self._refuse(HTTPStatus.UNAUTHORIZED, f"{error.message}; {error.hint} [{error.code}]")
            return results.failed(error.code, error.message, error.hint)
        headers |= target.headers(provider, secret, headers.get("anthropic-beta", ""))
        headers["accept-encoding"] = "identity"
        try:
            with proxy.client(provider).stream(
                self.command, f"{target.base_url}/{path}", content=text.encode(), headers=headers
            ) as answer:
                return self._streamed(answer)
        except (httpx.HTTPError, ValueError) as error:  # ValueError: a header that cannot be sent
            what = f"the model's server did not answer, or broke off: {type(error).__name__}"
            if not self._begun:
                self._refuse(HTTPStatus.BAD_GATEWAY, what)
            self.close_connection = True
            return self._broken(what)

    _begun = False
    _heard = bytearray()
    """What came of the answer to the request of now."""

    def _streamed(self, answer: httpx.Response) -> ToolResult:
        size, whole = 0, True
        self._heard = kept = bytearray()
        self._begun = True
        with suppress(OSError):
            self.send_response(answer.status_code)
            for name in _BACK:
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
        for chunk in answer.iter_bytes():
            size += len(chunk)
            kept += chunk[: MOST_ANSWER - len(kept)]
            if whole and chunk:
                try:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                except OSError:  # the agent went away; the model is paid all the same
                    whole = False
        with suppress(OSError):
            self.wfile.write(b"0\r\n\r\n")
        self._begun = False
        done = self._counted(bytes(kept), answer.status_code)
        return replace(done, size=size, truncated=size > len(kept))

    def _counted(self, data: bytes, status: int) -> ToolResult:
        """An answer, or what came of it, with what it took."""
        model, usage = wire.used(data)
        return replace(
            _answered(data, status),
            model=model,
            tokens=usage.get("input", 0) + usage.get("output", 0),
            cost_nanousd=self.server.proxy.prices.cost(model, usage) if usage else None,
        )

    def _refuse(self, status: int, message: str) -> None:
        """An error as both providers write one."""
        error = {"type": "error", "error": {"type": "permission_error", "code": "guard", "message": message}}
        self._write(status, json.dumps(error).encode())

    def _write(self, status: int, data: bytes) -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)


def _answered(data: bytes, status: int) -> ToolResult:
    """An answer as the run records it."""
    code = 0 if status < 400 else 1
    key = {"exit": code, "status": int(status)}
    return ToolResult("exited", code, data, len(data), canon.digest(data), False, key)


def _told(value: Any, notes: list[str]) -> Any:
    """The request with what the guard has to say, as the last words of the last message."""
    if not notes or not isinstance(value, dict):
        return value
    text = "<spak>\n" + "\n".join(notes) + "\n</spak>"
    if isinstance(value.get("input"), str):
        return {**value, "input": f"{value['input']}\n{text}"}
    for name in ("messages", "input"):
        listed = value.get(name)
        if isinstance(listed, list):
            last = listed[-1] if listed else None
            content = last.get("content") if isinstance(last, dict) and last.get("role") == "user" else None
            if name == "messages" and isinstance(last, dict) and isinstance(content, list):
                blocks = [*content, {"type": "text", "text": text}]
                return {**value, name: [*listed[:-1], {**last, "content": blocks}]}
            return {**value, name: [*listed, {"role": "user", "content": text}]}
    return value
