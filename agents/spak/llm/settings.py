"""The `[llm]` part of `spak.toml`: which backend and model answer, per spec, per role and per task.

Takes the table as TOML gave it, the folder of the file and the environment; gives `LlmSettings`. A role's or
a task's table lays itself over `[llm]`; a task goes before a role. A table's settings belong to its `mode`:
where another backend is named by a flag or a spec, those of `[llm]` do not apply to it.

Keys for servers come from a variable of the environment or from a file that only its owner can read, never
from `spak.toml` itself. They are held as `Secret`, which no repr, exception or log shows.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from spak.errors import UnavailableError, UsageError
from spak.inputs import open_input
from spak.lang.catalog import backend_name
from spak.secrets.secret import Secret

KEYS: Mapping[str, type | tuple[type, ...]] = {
    "mode": str,
    "model": str,
    "base_url": str,
    "key_env": str,
    "key_file": str,
    "timeout_s": (int, float),
    "connect_s": (int, float),
    "silence_s": (int, float),
    "retries": int,
    "max_tokens": int,
    "window": int,
    "temperature": (int, float),
    "top_p": (int, float),
    "seed": int,
    "logprobs": bool,
    "structured": bool,
    "threads": int,
    "command": str,
    "recording": str,
    "strict": bool,
    "prices": str,
}
"""Every key of `[llm]`, `[llm.roles.NAME]` and `[llm.tasks.NAME]` with its type; `prices` of `[llm]` only."""

RANGES: Mapping[str, tuple[float, float]] = {
    "timeout_s": (0.1, 86_400),
    "connect_s": (0.05, 3600),
    "silence_s": (0.05, 86_400),
    "retries": (0, 20),
    "max_tokens": (1, 10_000_000),
    "window": (256, 100_000_000),
    "temperature": (0, 10),
    "top_p": (0, 1),
    "seed": (0, 2**31 - 1),
    "threads": (1, 1024),
}

STANDARD_KEYS: Mapping[str, str] = {"anthropic": "ANTHROPIC_API_KEY", "openai_compatible": "OPENAI_API_KEY"}
"""The variable that holds a backend's key where none is named, and only for the maker's own address."""

LOCAL_WINDOW = 4096
"""The window of a local model where none is set."""

MAX_TOKENS = 4096
"""The longest answer where neither a length nor a window is set."""

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Choice:
    """What one call goes by: a backend, its model, where it is, and the limits."""

    mode: str = ""
    model: str = ""
    base_url: str = ""
    key_env: str = ""
    key_file: str = ""
    timeout_s: float = 300.0
    connect_s: float = 10.0
    silence_s: float = 120.0
    """Seconds without a byte, before the first one or between two."""
    retries: int = 3
    max_tokens: int = 0
    """0 is not set: `longest` says what holds then."""
    window: int = 0
    """Tokens that the model takes in; 0 is not known."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """`temperature`, `top_p`, `seed`, as far as they are set."""
    logprobs: bool | None = None
    structured: bool = True
    """Whether the schema of an answer is sent to the engine."""
    threads: int = 0
    command: str = "gemini"
    recording: str = ""
    strict: bool = True
    folder: Path = Path()
    """What relative paths start from."""
    cache: Path = Path()
    """Where models that were fetched are kept."""
    reach: tuple[str, ...] = ()
    """Kinds of addresses that servers may be at; without any, what spak.llm.address_check says."""
    secret: Secret | None = None

    @property
    def longest(self) -> int:
        """Tokens of an answer at most: as set, else 4096, or the fifth of the window that prompts leave."""
        window = self.window or (LOCAL_WINDOW if self.mode == "local" else 0)
        return self.max_tokens or (min(MAX_TOKENS, window // 5) if window else MAX_TOKENS)

    @property
    def host(self) -> str:
        """The host of the address."""
        return urlsplit(self.base_url).hostname or ""

    def path(self, name: str) -> Path:
        """A path of the settings, from the folder that they were read in."""
        return self.folder / Path(name).expanduser()


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """The settings of `[llm]`, by role and task."""

    base: Choice = Choice()
    roles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prices: Path | None = None
    keys: Mapping[str, Secret] = field(default_factory=dict)
    """Variables of the environment that a table names, or that are standard, and that are set."""

    def choice(self, mode: str = "", task: str = "", role: str = "", forced: bool = False) -> Choice:
        """What a call for this task and role goes by.

        `mode` stands in the place of `[llm] mode`; `forced`, from a flag, in that of every table.
        A table without a `mode` belongs to the one of `[llm]` and says nothing about another.
        """
        mine = self.base.mode
        found = _bare(mode, self.base) if mode and mine not in ("", mode) else self.base
        found = replace(found, mode=mode or mine)
        for table in (self.roles.get(role, {}), self.tasks.get(task, {})):
            own = table.get("mode", "") or mine
            if own and own != found.mode:
                if forced or not table.get("mode"):
                    continue
                found = _bare(own, found)
            found = replace(_lay(found, table), mode=own or found.mode)
        return replace(found, secret=self._secret(found))

    def backends(self) -> tuple[str, ...]:
        """Every backend that some table names."""
        named = [self.base.mode, *(t.get("mode", "") for t in (*self.roles.values(), *self.tasks.values()))]
        return tuple(dict.fromkeys(name for name in named if name))

    def secrets(self) -> tuple[Secret, ...]:
        """Every key that a call could carry, for the redactor.

        Raises: UnavailableError `llm.key_file` when one of the files cannot be read.
        """
        tables = [{}, *self.roles.values(), *self.tasks.values()]
        files = {str(table.get("key_file", self.base.key_file)) for table in tables} - {""}
        return (*self.keys.values(), *(read_key(self.base.path(name)) for name in sorted(files)))

    def _secret(self, chosen: Choice) -> Secret | None:
        if chosen.key_file:
            return read_key(chosen.path(chosen.key_file))
        if chosen.key_env:
            return self.keys.get(chosen.key_env)
        return self.keys.get(STANDARD_KEYS.get(chosen.mode, "")) if not chosen.base_url else None


def read(
    values: Mapping[str, Any], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> LlmSettings:
    """The settings that `[llm]` holds.

    Raises: UsageError `usage.config` for unknown keys and for values of a wrong type or out of range.
    """
    if not isinstance(values, Mapping):
        raise UsageError("usage.config", "llm is not a table", "write [llm]")
    flat = {key: value for key, value in values.items() if key not in ("roles", "tasks")}
    _judge("llm", flat)
    flat = _named({key: value for key, value in flat.items() if value != ""})
    tables: dict[str, dict[str, Mapping[str, Any]]] = {"roles": {}, "tasks": {}}
    for kind, found in tables.items():
        given = values.get(kind, {})
        if not isinstance(given, Mapping):
            raise UsageError("usage.config", f"[llm.{kind}] is not a table", f"write [llm.{kind}.NAME]")
        for name, table in given.items():
            if not isinstance(table, Mapping) or "prices" in table:
                raise UsageError(
                    "usage.config", f"[llm.{kind}.{name}] is not a table of a model's settings", ""
                )
            _judge(f"llm.{kind}.{name}", table)
            found[name] = _named(table)
    base = _lay(Choice(folder=folder or Path(), cache=_cache(environment or {})), flat)
    named = {
        table.get("key_env", "") for table in (flat, *tables["roles"].values(), *tables["tasks"].values())
    }
    wanted = (named | set(STANDARD_KEYS.values())) - {""}
    keys = {
        name: Secret(text) for name in sorted(wanted) if (text := (environment or {}).get(name, "").strip())
    }
    prices = base.path(flat["prices"]) if flat.get("prices") else None
    return LlmSettings(base, tables["roles"], tables["tasks"], prices, keys)


def read_key(path: Path) -> Secret:
    """The key in a file: one line, and nobody but the owner may read it.

    Raises: UnavailableError `llm.key_file`.
    """
    try:
        with open_input(path) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(8193)
        text = data.decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        from spak.secrets.redact import Redactor  # its expressions take a while to compile

        reason = getattr(error, "strerror", None) or "not plain text"
        shown = Redactor().text(str(path).encode("utf-8", "replace").decode())  # it may be the key itself
        raise UnavailableError(
            "llm.key_file",
            f"the key file {shown} cannot be read: {reason}",
            "key_file names a file with one line, the key, and mode 600",
        ) from None
    if mode & 0o077:
        raise UnavailableError(
            "llm.key_file", f"others may read the key file {path}", f"chmod 600 {path}, and make a new key"
        )
    if not text or len(data) > 8192 or not text.isprintable() or " " in text:
        raise UnavailableError(
            "llm.key_file", f"the key file {path} does not hold one key", "one line, no spaces"
        )
    return Secret(text)


def _cache(environment: Mapping[str, str]) -> Path:
    """The user's cache folder for models, by the XDG rule."""
    given = environment.get("XDG_CACHE_HOME", "")
    home = Path(environment.get("HOME") or "~").expanduser()
    return (Path(given) if given.startswith("/") else home / ".cache") / "spak" / "models"


def _named(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table with its backend by its own name."""
    return {key: backend_name(value) if key == "mode" else value for key, value in table.items()}


def _lay(under: Choice, table: Mapping[str, Any]) -> Choice:
    """The choice with a table laid over it."""
    changes = {key: value for key, value in table.items() if key not in (*_PARAMS, "prices")}
    params = {key: table[key] for key in _PARAMS if key in table}
    if "base_url" in changes:
        changes["base_url"] = changes["base_url"].rstrip("/")
    if "base_url" in changes or "key_file" in changes or "key_env" in changes:
        # A key goes only where its own table sends it: never along to another address.
        changes = {"key_env": "", "key_file": "", **changes}
    return replace(under, params={**under.params, **params}, **changes)


_PARAMS = ("temperature", "top_p", "seed")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)?")


def _bare(mode: str, like: Choice) -> Choice:
    """A backend without settings of its own: the limits stay, what belongs to another engine does not."""
    return Choice(
        mode=mode,
        timeout_s=like.timeout_s,
        connect_s=like.connect_s,
        silence_s=like.silence_s,
        retries=like.retries,
        max_tokens=like.max_tokens,
        folder=like.folder,
        cache=like.cache,
        reach=like.reach,
    )


def _judge(table: str, items: Mapping[str, Any]) -> None:
    for key, value in items.items():
        wanted = KEYS.get(key)
        if wanted is None:
            known = ", ".join(KEYS)
            hint = (
                "keys come from key_env or key_file" if "key" in key or "token" in key else f"known: {known}"
            )
            raise UsageError("usage.config", f"unknown key {key} in [{table}]", hint)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise _bad(table, key, value, _wanted(key, wanted))
        if key in RANGES and isinstance(value, (int, float)):
            least, most = RANGES[key]
            if not least <= value <= most:
                raise _bad(table, key, value, f"a number from {least} to {most}")
    if not _VARIABLE.fullmatch(items.get("key_env", "")):
        # It may be the key itself: it is not shown.
        raise UsageError(
            "usage.config",
            f"[{table}] key_env is not the name of a variable",
            'such as "MY_KEY"; the key itself is in that variable, or in key_file',
        )
    url = items.get("base_url")
    if url is not None:
        _judge_url(table, url)


def _wanted(key: str, wanted: type | tuple[type, ...]) -> str:
    """What a key wants, with an example that is one."""
    usual = getattr(Choice(), key, None)
    if wanted is str:
        return f'a text, such as {key} = "{usual or "..."}"; docs/models.md lists the settings'
    kind = "true or false" if wanted is bool else "a whole number" if wanted is int else "a number"
    return f"{kind}; docs/models.md lists the settings"


def _judge_url(table: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment
        port_and_user = (parts.port, parts.username or parts.password)
    except ValueError:
        wrong, port_and_user = True, (None, None)
    if wrong or port_and_user[1]:
        # The address may hold a password: it is not shown.
        raise UsageError(
            "usage.config",
            f"[{table}] base_url is not an address without user and query",
            'such as "http://127.0.0.1:11434"; the key comes from key_env or key_file',
        )


def _bad(table: str, key: str, value: object, hint: str) -> UsageError:
    return UsageError("usage.config", f"[{table}] {key} can not be {value!r}", hint)
