"""Where checkpoints go, outside of the store: a folder, a branch of a git remote, an object store by URL.

Takes the text of a place and files by name; KINDS lists the kinds. A place is what the writer of the store
cannot rewrite, or only visibly: another machine's folder, a remote that refuses forced pushes, a bucket whose
objects are kept. Each place has `<size>.checkpoint` of each checkpoint and `latest.checkpoint`.

    /mnt/evidence              a folder, made where it is missing
    git+ssh://host/repo.git    the branch `checkpoints` of a repository, pushed with the git of this machine;
                               with `#name` at the end the branch `checkpoints-name`
    https://host/bucket/path   GET and PUT below it, `Authorization: Bearer` with a token
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from spak.errors import LedgerError
from spak.files.scratch import Scratch
from spak.ledger.note import MAX_BYTES, Note
from spak.ledger.scan import fsync_folder

LATEST = "latest.checkpoint"
BRANCH = "checkpoints"
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of places: `read` gives a file or None, `write` puts files there."""

    name: str
    fits: Callable[[str], bool]
    read: Callable[[str, str, str], bytes | None]
    write: Callable[[str, Mapping[str, bytes], str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """A place, with the token that its server asks for, if any."""

    text: str
    kind: Kind
    token: str = ""

    def latest(self) -> bytes | None:
        """The last checkpoint there. Raises: LedgerError `ledger.place`."""
        return self.kind.read(self.text, LATEST, self.token)

    def write(self, note: Note) -> None:
        """Put a checkpoint there. Raises: LedgerError `ledger.place`."""
        data = note.text().encode()
        self.kind.write(self.text, {name_of(note): data, LATEST: data}, self.token)


def place(text: str, token: str = "") -> Place:
    """The place that a text names."""
    return Place(text, next(kind for kind in KINDS if kind.fits(text)), token)


def name_of(note: Note) -> str:
    """The name of a checkpoint's file: sorted by name they are sorted by size."""
    return f"{note.head().size:012d}.checkpoint"


def shown(text: str) -> str:
    """A place without what may be secret in its address."""
    prefix, rest = ("git+", text[4:]) if text.startswith("git+") else ("", text)
    parts = urlsplit(rest)
    if not parts.netloc:
        return text
    return prefix + urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


# ---- folder --------------------------------------------------------------------------------------------


def _read_folder(text: str, name: str, token: str) -> bytes | None:
    try:
        with (Path(text) / name).open("rb") as file:
            return file.read(MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(text, error.strerror or str(error)) from error


def _write_folder(text: str, files: Mapping[str, bytes], token: str) -> None:
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            aside = folder / f".{name}.{os.getpid()}"
            with aside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            aside.rename(folder / name)
        fsync_folder(folder)
    except OSError as error:
        raise _failed(text, error.strerror or str(error)) from error


# ---- git -----------------------------------------------------------------------------------------------


def _read_git(text: str, name: str, token: str) -> bytes | None:
    with Scratch("checkpoint") as folder:
        if not _fetch(text, folder):
            return None
        done = _git(text, folder, "show", f"FETCH_HEAD:{name}", check=False)
        return done.stdout if done.returncode == 0 else None


def _write_git(text: str, files: Mapping[str, bytes], token: str) -> None:
    with Scratch("checkpoint") as folder:
        if _fetch(text, folder):
            _git(text, folder, "checkout", "--quiet", "--detach", "FETCH_HEAD")
        try:
            for name, data in files.items():
                (folder / name).unlink(missing_ok=True)  # what a remote has there may be a link
                (folder / name).write_bytes(data)
        except OSError as error:
            raise _failed(text, f"{name}: {error.strerror}") from error
        _git(text, folder, "add", "--", *files)
        if not _git(text, folder, "status", "--porcelain").stdout:
            return
        who = ("-c", "user.name=spak", "-c", "user.email=spak@localhost", "-c", "commit.gpgSign=false")
        _git(text, folder, *who, "commit", "--quiet", "--message", f"Checkpoint {min(files)}")
        remote, branch = _branch(text)
        _git(text, folder, "push", "--quiet", "--", remote, f"HEAD:{branch}")


def _fetch(text: str, folder: Path) -> bool:
    """An empty repository in the folder, with the branch if the remote has it."""
    _git(text, folder, "init", "--quiet", "--template=")
    remote, branch = _branch(text)
    found = _git(text, folder, "ls-remote", "--", remote, branch).stdout
    if found:
        _git(text, folder, "fetch", "--quiet", "--depth=1", "--", remote, branch)
    return bool(found)


def _branch(text: str) -> tuple[str, str]:
    """The remote that the text of a place names, and the whole name of its branch."""
    remote, _, name = text[4:].partition("#")
    return remote, f"refs/heads/{BRANCH}-{name}" if name else f"refs/heads/{BRANCH}"


def _git(text: str, folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    """git with the credentials of the user, asking nobody."""
    line = ["git", "-C", str(folder), "-c", "core.hooksPath=/dev/null", *words]
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_SSH_COMMAND": _ssh(), "LC_ALL": "C"}
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        env.pop(name, None)
    try:
        done = subprocess.run(line, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise _failed(text, f"git took longer than {TIMEOUT_S:.0f} seconds") from error
    except OSError as error:
        raise _failed(text, f"git: {error.strerror}") from error
    if check and done.returncode:
        raise _failed(text, _reason(text, done) or f"git ended with {done.returncode}")
    return done


def _reason(text: str, done: subprocess.CompletedProcess[bytes]) -> str:
    """Git's first paragraph, which names the cause; the next one is general advice."""
    words = done.stderr.decode(errors="replace").replace(_branch(text)[0], shown(text[4:])).strip()
    return "; ".join(line.strip() for line in words.split("\n\n")[0].splitlines())[:200]


def _ssh() -> str:
    return os.environ.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")


# ---- URL -----------------------------------------------------------------------------------------------


def _read_url(text: str, name: str, token: str) -> bytes | None:
    status, data = _http("GET", text, name, token, None)
    if status in (404, 410):
        return None
    if status != 200:
        raise _failed(text, f"GET was answered with {status}")
    return data


def _write_url(text: str, files: Mapping[str, bytes], token: str) -> None:
    for name, data in files.items():
        status, _ = _http("PUT", text, name, token, data)
        if status not in (200, 201, 204):
            raise _failed(text, f"PUT was answered with {status}")


def _http(method: str, text: str, name: str, token: str, data: bytes | None) -> tuple[int, bytes]:
    import httpx

    parts = urlsplit(text)
    url = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))
    headers = {"Content-Type": "text/plain; charset=utf-8"} if data is not None else {}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.stream(method, url, content=data, headers=headers, timeout=TIMEOUT_S) as response:
            found = b""
            for part in response.iter_bytes():
                found += part
                if len(found) > MAX_BYTES:
                    break
            return response.status_code, found[:MAX_BYTES]
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failed(text, f"{type(error).__name__}") from error


def _failed(text: str, why: str) -> LedgerError:
    return LedgerError(
        "ledger.place", f"the place {shown(text)} failed: {why}", "check that it is there and may be written"
    )


KINDS = (
    Kind("git", lambda text: text.startswith("git+"), _read_git, _write_git),
    Kind("url", lambda text: text.startswith(("https://", "http://")), _read_url, _write_url),
    Kind("folder", lambda text: True, _read_folder, _write_folder),
)
"""The kinds, asked in this order."""
