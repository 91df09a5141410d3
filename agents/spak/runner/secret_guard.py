"""What tools do not see of a workspace, and no record holds of it: files of secrets and their values; and the
folder of runs, where a run works in the folder that holds it.

Takes a host and a workspace; `look`, at the start of each effect, finds the files that the law calls secret
(spak.commandline.places). `launcher` masks them for every job but one whose action was permitted on them, and
`redactor` takes the values that stand in them out of whatever becomes a record or is shown. Values are kept
in memory as long as the process lives, so a file that a tool renamed or removed is still kept out; `recall`
adds those that only git's history still has (spak.runner.secret_history).
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from spak.cancel import Token
from spak.commandline import places
from spak.datalog.values import Name
from spak.errors import UserError
from spak.files import beneath
from spak.kernel.observed import Malformed, Observed
from spak.kernel.state import Effect
from spak.llm.redact import Redactor, is_distinctive
from spak.policy.actions import Action
from spak.policy.facts import facts
from spak.ports import Call, Launcher, Measurement, Redacting
from spak.runner import secret_history, secret_values
from spak.runner.host import Host
from spak.sandbox.masked import Masked
from spak.workspace import Workspace
from spak.workspace.secret_files import Mark, called, mark, other_names, walk

_SECRET = Name("/secret")
GIT_CONFIG = ".git/config"
_SETTLED_NS = 100_000_000


class SecretGuard:
    """For one workspace, as long as a process works in it."""

    def __init__(self, host: Host, workspace: Workspace) -> None:
        self.host, self._workspace = host, workspace
        self.redactor: Redacting | None = host.redactor
        self._reader = Reader(workspace.directory, host.shown_secrets)
        self._seen: frozenset[str] = frozenset()
        self._values: tuple[str, ...] = ()
        """Of those that were seen, the ones that can be taken out, the earliest first: what a tool writes
        puts none of them out of mind."""
        self._old: tuple[str, ...] = ()
        """Of git's history; last, so that they put none of a file of today out of mind."""
        self._known: tuple[str, ...] = ()
        """All of them."""
        self._recalled: secret_history.Mark = ()
        self._paths: tuple[str, ...] = ()
        self._marks: dict[str, Mark] = {}
        """Which files were masked, by where they lay: a job may rename a folder above one, after which its
        name says no secret any more."""

    def recall(self, effect: Effect, lock: int, cancel: Token) -> None:
        """Know what stood in files of secrets that git's history has, before a job of this effect runs: the
        first time, and when objects came from elsewhere. `lock` is the workspace's. Raises: Cancelled."""
        if self.host.launcher is None or not self._starts_jobs(effect):
            return
        directory = self._workspace.directory
        mark = secret_history.mark(directory)
        if mark == self._recalled:
            return
        call = Call(
            effect.id, effect.name, {}, directory, self.host.launcher, limits=self.host.limits,
            toolchain=self.host.toolchain, inherit=(lock,), cancel=cancel,
        )  # fmt: skip
        found = secret_history.values(call, self.host.shown_secrets)
        self._old = tuple(dict.fromkeys((*self._old, *filter(is_distinctive, found))))
        self._recalled = mark
        if self._old:
            self._renew()

    def look(self, fresh: bool = False) -> None:
        """See which files of secrets there are; `fresh` looks at the folder itself, outside of a step."""
        named = self._workspace.secret_files(fresh)
        root = self._workspace.directory
        still = {path for path, held in self._marks.items() if held == mark(root, path)}
        moved = called(root, [held for path, held in self._marks.items() if path not in still])
        found, values = self._reader.read({*named, *still, *moved, *other_names(root, named)})
        self._paths = found
        self._marks = {path: held for path in found if (held := mark(root, path)) is not None}
        if not values <= self._seen:
            self._values += tuple(
                value for value in values if value not in self._seen and is_distinctive(value)
            )
            self._seen |= values
            self._renew()

    def _renew(self) -> None:
        self._known = (*self._values, *self._old)
        self.redactor = (self.host.redactor or Redactor()).knowing(self._known)

    def look_before(self, effect: Effect) -> None:
        """`look`, at the folder itself where the effect starts jobs of tools in it."""
        self.look(fresh=self._starts_jobs(effect))

    def _starts_jobs(self, effect: Effect) -> bool:
        tool = self.host.tools.get(effect.name)
        return effect.act == "validate" or (
            effect.act == "tool" and tool is not None and tool.entry.sandboxed
        )

    def clean(self, value: Any) -> Any:
        """A text or a JSON value without secrets. Raises: RunError `llm.redaction`."""
        if self.redactor is None:
            return value
        return self.redactor.text(value) if isinstance(value, str) else self.redactor.value(value)

    def launcher(self, effect: Effect, args: Mapping[str, Any]) -> Launcher | None:
        """The host's launcher for jobs of this effect."""
        inner = self.host.launcher
        if inner is None or not (self._paths or self._workspace.ours):
            return inner
        hidden = (*self._workspace.ours, *masks(self._paths, _permitted(effect, args)))
        return Masked(inner, self._workspace.directory, hidden)

    def recordable(self, found: Measurement) -> Measurement:
        """The same; a failed check where a file that was measured holds a value, since its bytes are kept."""
        data = b"\n".join(found.subject.files.values()) if self._known else b""
        if not any(value.encode("utf-8", "replace") in data for value in self._known):
            return found
        why = "a measured file holds a value of a file of secrets; it is not kept"
        failed = {"name": "secrets", "ok": False, "code": "secret", "detail": why}
        return Measurement(
            "checked", (*found.checks, failed), diagnostics=found.diagnostics, evidence=found.evidence,
            wall_ms=found.wall_ms, cpu_ms=found.cpu_ms,
        )  # fmt: skip

    def seen(self, facts: Any) -> Any:
        """An observation without the values; as it was where there are none. Raises: RunError."""
        return self.redactor.value(facts) if self._known and self.redactor is not None else facts


class Reader:
    """Reads files of secrets, each as often as it changes. `shown` are patterns of paths that are none."""

    def __init__(self, root: Path, shown: Collection[str] = ()) -> None:
        self._root, self._shown = root, shown
        self._place = str(root)
        self._known: dict[str, tuple[tuple[int, ...], Sequence[str] | None]] = {}

    def read(self, paths: Iterable[str]) -> tuple[tuple[str, ...], Set[str]]:
        """Those that are files of secrets, in order, and all values in them, of each file in turn, the
        shortest first: a file that holds thousands puts none of another's out of mind."""
        found, values = [], []
        for path in sorted(paths):
            if any(fnmatchcase(path, pattern) for pattern in self._shown):
                continue
            held = self._values(path)
            if held is not None:
                found.append(path)
                values.append(held)
        values.append(self._values(GIT_CONFIG) or ())  # which git needs, so that it is not masked
        self._known = {path: self._known[path] for path in (*found, GIT_CONFIG) if path in self._known}
        in_turn = chain.from_iterable(zip_longest(*values))
        return tuple(found), dict.fromkeys(value for value in in_turn if value is not None).keys()

    def _values(self, path: str) -> Sequence[str] | None:
        """The values in a file; None where it holds public keys alone."""
        try:
            info = os.lstat(f"{self._place}/{path}")
        except OSError:
            return None
        mark = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        known = self._known.get(path)
        if known is not None and known[0] == mark:
            return known[1]
        try:
            data = beneath.read_beneath(self._root, path, secret_values.MAX_BYTES)
        except (UserError, OSError):
            data = b""
        public = secret_values.is_public(path, data)
        held_ = secret_values.of_git(data) if path == GIT_CONFIG else secret_values.values(path, data)
        held = None if public else sorted(held_, key=lambda item: (len(item), item))
        if max(info.st_mtime_ns, info.st_ctime_ns) < time.time_ns() - _SETTLED_NS:
            self._known[path] = mark, held
        return held


def found_in(root: Path, shown: Collection[str] = ()) -> tuple[tuple[str, ...], Set[str]]:
    """What to mask in a folder that no run has yet, and the values to keep out of records."""
    named = walk(root)
    paths, values = Reader(root, shown).read((*named, *other_names(root, named)))
    return masks(paths, frozenset()), values


def masks(paths: Iterable[str], permitted: Collection[str]) -> tuple[str, ...]:
    """What a job does not see: a folder of secrets as a whole, unless something in it is permitted."""
    found: dict[str, None] = {}
    for path in paths:
        parts = path.split("/")
        tops = ["/".join(parts[: at + 1]) for at in range(len(parts))]
        if not set(tops).isdisjoint(permitted):
            continue
        folder = next(
            (top for top, name in zip(tops, parts[:-1], strict=False) if places.secret_folder(name)), ""
        )
        whole = folder and not any(item.startswith(f"{folder}/") for item in permitted)
        found[folder if whole else path] = None
    return tuple(found)


def _permitted(effect: Effect, args: Mapping[str, Any]) -> frozenset[str]:
    """The files of secrets that the action was permitted on: those it names, not what is below a folder."""
    if effect.act == "validate" and "cmd" in args:
        action = Action("run", {"cmd": args["cmd"]})
    elif effect.act == "tool":
        action = Action(effect.name, args)
    else:
        return frozenset()
    try:
        stated = facts(action, Observed(effect.observed).world)
    except (Malformed, UserError):
        return frozenset()
    return frozenset(
        str(values[3])
        for name, values in stated
        if name == "uses_path" and values[2] == _SECRET and values[1] != Name("/walks")
    )
