"""`spak keys`: the keys that a person signs approvals with, kept in that person's config folder.

A private key is one PEM file (PKCS 8, Ed25519) in `$XDG_CONFIG_HOME/spak/keys` (`~/.config/spak/keys`), mode
0600, and goes nowhere else: no ledger, no output, no error message has it. A file that others could read or
that belongs to somebody else is refused, not mended. Public keys go into `spak.toml`, `[approvals] keys`.
"""

from __future__ import annotations

import getpass
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from spak.cli import common
from spak.errors import UsageError

MAX_BYTES = 4096
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_SUFFIX = ".key"


@dataclass(frozen=True, slots=True)
class Key:
    """A key at hand; `private` never leaves this process."""

    name: str
    file: Path
    private: bytes

    @property
    def public(self) -> str:
        """The public key that belongs to it, in base64url."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        from spak.policy import approval

        key = Ed25519PrivateKey.from_private_bytes(self.private).public_key()
        return approval.encoded(key.public_bytes_raw())

    def __repr__(self) -> str:
        return f"Key({self.name!r})"

    def to_json(self) -> dict[str, Any]:
        """The key without its private half, and the approver that the settings list for it, if any."""
        from spak import config
        from spak.policy import approval

        public = self.public
        listed = next((item for item in config.settings().approvers if item["public"] == public), None)
        return {
            "name": self.name,
            "id": approval.key_id(public),
            "public": public,
            "file": str(self.file),
            "roles": [] if listed is None else list(listed["roles"]),
        }


def folder() -> Path:
    """Where the keys of the user are. Raises: UsageError `keys.missing` for a user without a home."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        base = Path(given) if given.startswith("/") else Path.home() / ".config"
    except RuntimeError as error:
        raise UsageError("keys.missing", "there is no home folder to keep keys in", "set HOME") from error
    return base / "spak" / "keys"


def names() -> list[str]:
    """The keys there are, by their files."""
    try:
        return sorted(path.stem for path in folder().iterdir() if path.suffix == _SUFFIX)
    except FileNotFoundError:
        return []


def load(name: str) -> Key:
    """A key by its name.

    Raises: UsageError `keys.name`, `keys.missing`, `keys.mode`, `keys.damaged`.
    """
    path = folder() / f"{_checked(name)}{_SUFFIX}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise UsageError("keys.missing", f"there is no key {name!r}", "spak keys make NAME") from error
    except OSError as error:
        raise UsageError(
            "keys.mode", f"{path}: {error.strerror}", "a key is a plain file of yours"
        ) from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise UsageError(
                "keys.mode", f"{path} is not a plain file that you own", "make a key of your own"
            )
        if status.st_mode & 0o077:
            raise UsageError("keys.mode", f"others may read {path}", f"chmod 600 {path}; or make a new key")
        data = os.read(fd, MAX_BYTES)
    finally:
        os.close(fd)
    return Key(name, path, _private(path, data))


def make(name: str) -> Key:
    """A new key in a file of its own. Raises: UsageError `keys.name`, `keys.exists`, `keys.mode`."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = folder() / f"{_checked(name)}{_SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.parent.stat().st_mode & 0o022:
        raise UsageError(
            "keys.mode",
            f"others may write in {path.parent}",
            f"chmod 700 {path.parent}, then check its contents",
        )
    key = Ed25519PrivateKey.generate()
    data = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    aside = path.with_name(f".{name}.{os.getpid()}")
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(fd, 0o600)
            os.fsync(fd)
        os.link(aside, path)  # unlike a rename, never over a key that is there
    except FileExistsError as error:
        raise UsageError(
            "keys.exists", f"there is a key {name!r} already", "choose another name; nothing was changed"
        ) from error
    finally:
        with suppress(OSError):
            aside.unlink()
    return Key(name, path, key.private_bytes_raw())


def chosen(name: str | None, public: frozenset[str]) -> Key:
    """The key to sign with: the one that is named, else the first of the user's that is among `public`.

    Raises: UsageError `keys.missing`, `keys.unlisted` and what `load` raises.
    """
    if name is not None:
        key = load(name)
        if key.public not in public:
            raise _unlisted(name)
        return key
    wrong = UsageError(
        "keys.missing", "there is no key to sign with", "spak keys make, and add it to spak.toml"
    )
    for item in names():
        try:
            key = load(item)
        except UsageError as error:  # told only if no other key fits
            wrong = error
            continue
        if key.public in public:
            return key
        wrong = _unlisted(item)
    raise wrong


def _unlisted(name: str) -> UsageError:
    return UsageError(
        "keys.unlisted",
        f"the key {name} is not an approver of this run",
        "the approvers are those of spak.toml when the run began; add the key and start a new run",
    )


def usual_name() -> str:
    """The login name, as a key's name."""
    try:
        text = re.sub(r"[^A-Za-z0-9._-]", "-", getpass.getuser())
    except (KeyError, OSError):
        text = ""
    return text if _NAME.match(text) else "me"


def _checked(name: str) -> str:
    if not _NAME.match(name):
        raise UsageError("keys.name", f"{name!r} is not a name for a key", "use letters, digits, . _ and -")
    return name


def _private(path: Path, data: bytes) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # what they say could quote the file
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            "keys.damaged", f"{path} is not an Ed25519 key", "make a new one: spak keys make NAME"
        )
    return key.private_bytes_raw()


# ---- the verb ------------------------------------------------------------------------------------------


@click.group()
def command() -> None:
    """The keys that you sign approvals with."""


@command.command("make")
@click.argument("name", required=False)
@common.json_option
def make_command(name: str | None, as_json: bool) -> int:
    """Make a key NAME (your login name) and print what goes into spak.toml."""
    return _show(make(name or usual_name()), as_json)


@command.command("list")
@common.json_option
def list_command(as_json: bool) -> int:
    """List the keys, with the reason where one cannot be used."""
    found: list[dict[str, Any]] = []
    for name in names():
        try:
            found.append(load(name).to_json())
        except UsageError as error:
            found.append({"name": name, "error": {"code": error.code, "message": error.message}})
    if as_json:
        common.emit({"folder": str(folder()), "keys": found})
        return 0
    for item in found:
        if "error" in item:
            common.out(f"{item['name']}  {item['error']['message']} [{item['error']['code']}]")
        else:
            roles = ", ".join(item["roles"]) or "not in spak.toml"
            common.out(f"{item['name']}  {item['public']}  {roles}")
    if not found:
        common.say(f"no keys in {folder()}; make one: spak keys make")
    return 0


@command.command("show")
@click.argument("name", required=False)
@common.json_option
def show_command(name: str | None, as_json: bool) -> int:
    """The public part of the key NAME, as it goes into spak.toml."""
    return _show(load(name or usual_name()), as_json)


def _show(key: Key, as_json: bool) -> int:
    about = key.to_json()
    if as_json:
        common.emit(about)
        return 0
    common.out(f'[[approvals.keys]]\nname = "{key.name}"\npublic = "{about["public"]}"\nroles = ["approver"]')
    common.say(f"the private key is in {key.file}; the lines above go into spak.toml")
    return 0
