"""`git_push`: one commit of the run to one branch of a repository on a host that was judged.

A sandbox has no network, so that `git push` on a command line reaches nothing. Here the host's git makes the
pack in the run's bare repository (spak.repository.commits), with nothing of the user's configuration read;
this side sends it, by git's protocol over HTTP and as `http_request` does: to the address that was judged
with the call, no redirect followed, no proxy. No remote of `.git/config` is used.

What goes out is the run's last commit or one below it. A branch is made or moved forward, never moved back,
and nothing is deleted. Files of secrets, by their names or by what is in them, do not go out in any new
commit; what the run's commits change passes the door (spak.door), and what would run by itself goes out where
the call names it. Over http alone a push goes where every judged address is not a public one. It decides
nothing about who may push: the shipped law permits it only when a person signs.
Source: git's documentation, gitprotocol-http and gitprotocol-pack.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spak import schema_parts as parts
from spak.cancel import apart
from spak.errors import UsageError, UserError
from spak.files.faults import is_fault
from spak.lang.catalog import ToolEntry
from spak.policy import urls
from spak.ports import Call, ToolResult
from spak.tools import results
from spak.tools.http_request import addresses_of, at_address, client_of, host_header, watched

if TYPE_CHECKING:
    import httpx

    from spak.repository.commits import Commits

MAX_PACK = 5 << 20
"""Bytes of a pack that is sent."""
MAX_REFS, MAX_REPLY = 8 << 20, 256 << 10
"""Bytes that are read: of the list of refs, and of the answer."""
MAX_KNOWN = 20_000
SECONDS = 120.0
LOGIN = "x-access-token"
"""Who a token belongs to, for hosts that take any name."""
BRANCH = re.compile(
    r"refs/heads/(?!.*(?:\.\.|//|@\{|/\.|\.lock(?:/|\Z)|[./]\Z))[^\x00-\x20\x7f~^:?*\[\\.][^\x00-\x20\x7f~^:?*\[\\]*\Z"
)
_HASH = re.compile(r"[0-9a-f]{40}\Z")
_NONE = "0" * 40
_SERVICE = "git-receive-pack"
_LOGIN = re.compile(r"[^:\x00-\x20\x7f]{1,200}\Z")
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}\Z")


class GitPush:
    """The tool `git_push`."""

    entry = ToolEntry(
        name="git_push",
        version=1,
        summary="Sends a commit of the run to a branch of a permitted repository over https.",
        schema=parts.members(
            ["url", "branch"],
            url=parts.text("https://host/path.git", urls.MAX_URL, least=0),
            branch=parts.text("The branch there; made where it does not exist, else moved forward.", 255),
            commit=parts.text(
                "The commit, 40 hexadecimal digits; left out, the last of the run.", 40, least=40
            ),
            runs=parts.listed(
                "Paths that would run by themselves and may go out; who signs names them.",
                {"type": "string", "minLength": 1, "maxLength": 4095},
                256,
            ),
            login=parts.text("Whose token it is, where the host asks.", 200, default=LOGIN, least=0),
            token=parts.text("The token or password, as secret://NAME.", 4096, least=0),
            timeout_s=parts.TIMEOUT,
        ),
        sandboxed=False,
        writes=False,
        arguments={
            "url": "host",
            "branch": "text",
            "commit": "text",
            "runs": "text",
            "login": "text",
            "token": "text",
            "timeout_s": "text",
        },
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_push, call)


@dataclass(slots=True)
class _Remote:
    """The repository on its host, until `ends` (time.monotonic); counts what was sent to it."""

    call: Call
    url: urls.Url
    address: str
    headers: Mapping[str, str]
    ends: float
    requests: int = 0
    sent: int = 0

    def ask(self, path: str, kind: str, most: int, query: str = "", body: bytes | None = None) -> bytes:
        """The body of the answer, which is of that kind. Raises: UsageError `git_push.*`."""
        import httpx

        seconds = self.ends - time.monotonic()
        try:
            if seconds <= 0:
                raise TimeoutError
            with client_of(seconds) as client, watched(self.ends, self.call.cancel) as watch:
                request = client.build_request(
                    "GET" if body is None else "POST",
                    at_address(
                        replace(self.url, path=self.url.path.rstrip("/") + path, query=query), self.address
                    ),
                    headers={
                        **self.headers,
                        **({} if body is None else {"content-type": f"application/x-{_SERVICE}-request"}),
                    },
                    content=body,
                    extensions={"sni_hostname": self.url.host, "trace": watch},
                )
                self.requests += 1
                self.sent += len(body or b"") + len(request.url.raw_path)
                response = client.send(request, stream=True)
                try:
                    return self._body(response, kind, most)
                finally:
                    response.close()
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            if isinstance(error, (httpx.TimeoutException, TimeoutError)) or time.monotonic() >= self.ends:
                raise UsageError(
                    "git_push.timeout", f"no answer from {self.url.host} in time", "give timeout_s"
                ) from error
            raise UsageError(
                "git_push.failed", f"{self.url.host}: {str(error)[:200] or 'no reply'}", "is the host up?"
            ) from error

    def _body(self, response: httpx.Response, kind: str, most: int) -> bytes:
        status = response.status_code
        if status in (401, 403):
            raise UsageError(
                "git_push.denied",
                f"{self.url.host} answers {status}",
                "does the token have the right to write?",
            )
        if status != 200 or response.headers.get("content-type", "") != f"application/x-{_SERVICE}-{kind}":
            raise UsageError(
                "git_push.failed", f"{self.url.host} answers {status}, and not as a git repository does",
                "redirects are not followed: give the address that the repository has now",
            )  # fmt: skip
        data = bytearray()
        for chunk in response.iter_raw():
            data += chunk
            if len(data) > most:
                raise UsageError("git_push.failed", f"{self.url.host} answers with more than {most} bytes")
            if time.monotonic() >= self.ends:
                raise TimeoutError
        return bytes(data)


def _push(call: Call) -> ToolResult:
    args = call.args
    remote, ref = _remote(call), f"refs/heads/{args['branch']}"
    if not BRANCH.match(ref):
        raise UsageError("git_push.branch", f"{str(args['branch'])[:80]!a} is no name of a branch")
    repository = call.repository
    commit = str(args.get("commit") or (repository.head if repository is not None else ""))
    if repository is None or not _HASH.match(commit):
        raise UsageError("git_push.missing", "there is no commit to send", "commit first")
    try:
        return _sent(call, repository, remote, ref, commit)
    except UserError as error:
        if is_fault(error):
            raise
        found = results.failed(error.code, error.message, error.hint)
        return replace(found, requests=remote.requests, request_bytes=remote.sent)


def _sent(call: Call, repository: Commits, remote: _Remote, ref: str, commit: str) -> ToolResult:
    listed = apart(
        lambda: remote.ask("/info/refs", "advertisement", MAX_REFS, f"service={_SERVICE}"), call.cancel
    )
    refs = _refs(listed)
    old = refs.get(ref, "")
    known = ([old] if old else []) + sorted(set(refs.values()) - {old})[:MAX_KNOWN]
    if old == commit:
        done = results.done(f"{ref} is at {commit} already\n", commit=commit, ref=ref)
        return replace(done, requests=remote.requests, request_bytes=remote.sent)
    made = repository.pack(commit, old, known, MAX_PACK, call.args.get("runs", ()))
    order = f"{old or _NONE} {commit} {ref}\0 report-status\n".encode()
    body = b"%04x%s0000%s" % (len(order) + 4, order, made.data)
    reply = apart(lambda: remote.ask(f"/{_SERVICE}", "result", MAX_REPLY, body=body), call.cancel)
    lines = [line.decode("utf-8", "replace").strip() for line in _packets(reply)]
    if "unpack ok" not in lines or f"ok {ref}" not in lines:
        why = " ".join("".join(filter(str.isprintable, line)) for line in lines if not line.startswith("ok "))
        raise UsageError(
            "git_push.refused", f"{remote.url.host} refused it: {why[:300]}", "is the branch protected?"
        )
    moved = f"{old} to {commit}" if old else f"made at {commit}"
    done = results.done(f"{ref}: {moved}, {made.commits} commits\n", commit=commit, ref=ref)
    return replace(done, requests=remote.requests, request_bytes=remote.sent)


def _remote(call: Call) -> _Remote:
    """Where it goes. Raises: UsageError `git_push.url`, `git_push.login`, `http_request.*`."""
    args = call.args
    url = urls.parse(str(args["url"]), bare_hosts=True)
    if isinstance(url, urls.Trouble):
        raise UsageError("git_push.url", url.detail, "write https://host/path.git")
    addresses = addresses_of(call, url.host)
    private = "public" not in map(urls.reach_of, addresses)
    if url.query or url.scheme not in (("https", "http") if private else ("https",)):
        raise UsageError(
            "git_push.url", f"a push does not go to {url.scheme}://{url.host}", "write https://host/path.git"
        )
    headers = {"user-agent": "git/spak", "host": host_header(url), "accept-encoding": "identity"}
    login, token = str(args.get("login", LOGIN)), str(args.get("token", ""))
    if token:
        if not _LOGIN.match(login) or not _TOKEN.match(token):
            raise UsageError("git_push.login", "the login or the token has signs that no header takes")
        headers["authorization"] = f"Basic {base64.b64encode(f'{login}:{token}'.encode()).decode()}"
    seconds = min(float(args.get("timeout_s") or SECONDS), call.limits.wall_s)
    return _Remote(call, url, addresses[0], headers, time.monotonic() + seconds)


def _packets(data: bytes) -> Iterator[bytes]:
    """The lines of git's wire; a flush is an empty one. Raises: UsageError `git_push.failed`."""
    at = 0
    while at < len(data):
        try:
            size = int(data[at : at + 4], 16)
        except ValueError:
            size = -1
        if size < 0 or 0 < size < 4 or at + max(size, 4) > len(data):
            raise UsageError("git_push.failed", "the host answers with what git does not say")
        yield data[at + 4 : at + size] if size else b""
        at += size or 4


def _refs(data: bytes) -> dict[str, str]:
    """The branches and other refs of the repository, with the commits that they are at."""
    found: dict[str, str] = {}
    for line in _packets(data):
        value, _, name = line.split(b"\0")[0].decode("utf-8", "replace").strip().partition(" ")
        if _HASH.match(value) and value != _NONE:
            found[name] = value
    return found
