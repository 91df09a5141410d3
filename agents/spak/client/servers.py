"""The platforms that somebody signed in to with `spak login`, each with its token.

One JSON file of the user's, `$XDG_CONFIG_HOME/spak/servers.json` (`~/.config/spak/servers.json`), mode 0600,
from the origin of a platform to its token. SPAK_TOKEN comes before it, so that CI needs no file.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from spak.errors import UsageError

NAME = "servers.json"
MAX_BYTES = 1 << 20


def path() -> Path:
    """The file. Raises: UsageError `client.servers` for a user without a home."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        base = Path(given) if given.startswith("/") else Path.home() / ".config"
    except RuntimeError as error:
        raise UsageError("client.servers", "there is no home folder to keep tokens in", "set HOME") from error
    return base / "spak" / NAME


def token(server: str) -> str:
    """The token for a platform: SPAK_TOKEN, else what was kept; empty where there is none.

    Raises: UsageError `client.servers`.
    """
    return os.environ.get("SPAK_TOKEN", "") or _read().get(server, "")


def keep(server: str, secret: str) -> Path:
    """Keep a token. Raises: UsageError `client.servers`."""
    return _write({**_read(), server: secret})


def forget(server: str) -> bool:
    """Forget a platform; whether there was one. Raises: UsageError `client.servers`."""
    known = _read()
    if server not in known:
        return False
    _write({name: secret for name, secret in known.items() if name != server})
    return True


def _read() -> Mapping[str, str]:
    file = path()
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _bad(f"{file}: {error.strerror}") from error
    with os.fdopen(fd, "rb") as opened:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise _bad(f"{file} is not a plain file that you own")
        if status.st_mode & 0o077:
            raise _bad(f"others may read {file}")
        data = opened.read(MAX_BYTES)
    try:
        found = json.loads(data)
    except ValueError as error:
        raise _bad(f"{file} is not JSON") from error
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise _bad(f"{file} holds something else than tokens")
    return found


def _write(known: Mapping[str, str]) -> Path:
    file = path()
    aside = file.with_name(f".{NAME}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as opened:
            json.dump(dict(known), opened)
            opened.flush()
            os.fsync(fd)
        aside.replace(file)
    except OSError as error:
        raise _bad(f"{file}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            aside.unlink()
    return file


def _bad(why: str) -> UsageError:
    return UsageError("client.servers", why, f"remove the file and sign in again: spak login URL ({NAME})")
