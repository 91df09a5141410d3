"""What tools do not see of a workspace, and no record holds of it: files of secrets and their values; and the
folder of runs, where a run works in the folder that holds it.

Takes a host and a workspace; `look`, at the start of each effect, finds the files that the law calls secret
(spak.secrets.which). `launcher` masks them for every job, and
`redactor` takes the values that stand in them out of whatever becomes a record or is shown. What is in such a
file is followed by its SHA-256, in a list in the workspace's store: a file with the same content is masked
wherever it lies later, by whoever works there then, and its values stay known.

`look_begun` is `look` for a step that may write: it begins with a scan of the whole folder. Where that finds
what the step before found, or changes of ordinary files, nothing is read and no system call is made.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from spak.door import secret_in
from spak.errors import UserError
from spak.files import beneath
from spak.kernel.state import Effect
from spak.ports import Launcher, Measurement, Redacting
from spak.runner.host import Host
from spak.sandbox.masked import Masked
from spak.secrets import values as secret_values
from spak.secrets import which
from spak.secrets.mask import masks
from spak.secrets.redact import Redactor, is_distinctive
from spak.workspace import Workspace
from spak.workspace.secret_files import Mark, called, content, mark, other_names, walk
from spak.workspace.secret_list import Content
from spak.workspace.secret_nodes import holding, secret_files
from spak.workspace.tree import Node

_SETTLED_NS = 100_000_000


class SecretGuard:
    """For one workspace, as long as a process works in it; `first` is the root that the run began with."""

    def __init__(self, host: Host, workspace: Workspace, first: str = "") -> None:
        self.host, self._workspace, self._first = host, workspace, first
        self.redactor: Redacting | None = host.redactor
        self._reader = Reader(workspace.directory, host.shown_secrets)
        self._seen: frozenset[str] = frozenset()
        self._values: tuple[str, ...] = ()
        """Of those that were seen, the ones that can be taken out, the earliest first: what a tool writes
        puts none of them out of mind."""
        self._paths: tuple[str, ...] = ()
        self._marks: dict[str, Mark] = {}
        """Which files were masked, by where they lay: a job may rename a folder above one, after which its
        name says no secret any more. Found without reading, and where nothing is followed."""
        self._followed: Mapping[str, int] | None = None
        """What is in the list, digest and bytes; None before it was read."""
        self._public: set[str] = set()
        """Contents that are not followed: they lie in ordinary files too."""
        self._bare: Node | None = None
        """What lay in the workspace at a `look` that had nothing to read in it."""

    def look(self, fresh: bool = False) -> None:
        """See which files of secrets there are; `fresh` looks at the folder itself, outside of a step.

        Raises: RunError `workspace.*` where it cannot be kept which; LedgerError `ledger.lost_lease`.
        """
        tree = None if fresh else self._workspace.seen
        if tree is not None and tree is self._bare:
            return
        begins = self._followed is None
        followed = self._take_up() if self._followed is None else self._followed
        secrets, root = self._workspace.secrets, self._workspace.directory
        named: Collection[str] = secrets.files(fresh)
        again = secrets.holding(followed) if followed and (begins or secrets.scanned) else ()
        if named or again or self._marks:
            still = {path for path, held in self._marks.items() if held == mark(root, path)}
            moved = called(root, [held for path, held in self._marks.items() if path not in still])
            named = {*named, *still, *moved, *again, *other_names(root, named)}
        self._paths, values = self._reader.read(named)
        self._marks = {path: held for path in self._paths if (held := mark(root, path)) is not None}
        self._learn(values)
        if self._paths:
            self._follow(followed)
        self._bare = None if named else tree

    def _take_up(self) -> Mapping[str, int]:
        """What was masked here before, and know the values in it."""
        kept, values = [], []
        contents, listed = self._workspace.secrets.followed(self._first)
        for item in contents:
            if self._reader.shows(item.path):
                continue
            data = self._workspace.secrets.stored(item.digest, secret_values.MAX_BYTES) or b""
            if not secret_values.is_public(item.path, data):
                kept.append(item)
                values.append(_in_order(secret_values.masked(item.path, data)))
        self._learn(dict.fromkeys(_in_turn(values)).keys())
        self._followed = {item.digest: item.size for item in kept}
        if self._first and not listed:
            self._workspace.secrets.follow(kept)
        return self._followed

    def _follow(self, followed: Mapping[str, int]) -> None:
        """Keep what is in the files that are masked now, but what lies in an ordinary file too."""
        new = {
            item.digest: item
            for item in self._reader.contents()
            if item.digest not in followed and item.digest not in self._public
        }
        if not new:
            return
        hidden = set(self._paths)
        for item in tuple(new.values()):
            if not hidden.issuperset(self._workspace.secrets.holding({item.digest: item.size})):
                self._public.add(item.digest)
                del new[item.digest]
        self._workspace.secrets.follow(new.values())
        self._followed = {**followed, **{item.digest: item.size for item in new.values()}}

    def _learn(self, values: Set[str]) -> None:
        if not values <= self._seen:
            self._values += tuple(
                value for value in values if value not in self._seen and is_distinctive(value)
            )
            self._seen |= values
            self.redactor = (self.host.redactor or Redactor()).knowing(self._values)

    def know(self, key: str) -> None:
        """The same for a host with one more key. Raises: RunError `llm.redaction`."""
        known = (self.host.redactor or Redactor()).also(key)
        self.host, self.redactor = replace(self.host, redactor=known), known.knowing(self._values)

    def look_before(self, effect: Effect) -> None:
        """`look`, at the folder itself where the effect starts jobs of tools in it."""
        self.look(fresh=self._starts_jobs(effect))

    def look_begun(self) -> None:
        """`look`, where a step that may write has just begun: its scan has seen all there is, so that nothing
        is read where that has no file of secrets. Raises: as `look`."""
        tree = self._workspace.begun
        if tree is None or self._bare is None or self._names(tree):
            self.look()
        else:
            self._bare = tree

    def _names(self, tree: Node) -> bool:
        """Whether a scanned file is of secrets, or has a content that is followed."""
        return tree is not self._bare and bool(
            secret_files(tree) or (self._followed and holding(tree, self._followed))
        )

    def _starts_jobs(self, effect: Effect) -> bool:
        tool = self.host.tools.get(effect.name)
        return effect.act in ("validate", "sealed") or (
            effect.act == "tool" and tool is not None and tool.entry.sandboxed
        )

    def clean(self, value: Any) -> Any:
        """A text or a JSON value without secrets. Raises: RunError `llm.redaction`."""
        if self.redactor is None:
            return value
        return self.redactor.text(value) if isinstance(value, str) else self.redactor.value(value)

    def hides(self, path: str) -> bool:
        """Whether it leads to a file of secrets, by whichever name."""
        root = self._workspace.directory
        try:
            info = (root / path).stat()
        except (OSError, ValueError):
            return False  # nothing can be read there
        held = (info.st_dev, info.st_ino, info.st_mtime_ns)
        return any(mark(root, one) == held for one in self._paths)

    def launcher(self, folder: Path | None = None) -> Launcher | None:
        """The host's launcher for jobs in the workspace, or in another folder of its files: whatever a law
        permits, no program sees a file of secrets."""
        inner = self.host.launcher
        if inner is None:
            return inner
        hidden = (*self._workspace.ours, *masks(self._paths))
        return Masked(inner, folder or self._workspace.directory, hidden)

    def is_secret(self, path: str, data: bytes, old: bytes | None = None) -> bool:
        """Whether a file is one of secrets by its name, by what is in it, or by a value that is known; for an
        empty path whether a text holds a secret. With `old`, what lay there before, as the door has it."""
        if not path:
            found = bool(which.finds("", data))
        elif self._reader.shows(path) or secret_values.is_public(path, data):
            found = False
        elif old is not None:
            return which.secret(path) or bool(secret_in(path, data, old, self.holds))
        else:
            found = which.secret(path) or (which.may_hold_at(path) and bool(which.finds(path, data)))
        return found or self.holds(data)

    def holds(self, data: bytes) -> bool:
        """Whether a known value stands in the bytes."""
        return self.redactor is not None and self.redactor.holds(data)

    def recordable(self, found: Measurement) -> Measurement:
        """The same; a failed check where a measured file, whose bytes are kept, or a metric's name holds a
        secret. Raises: RunError `llm.redaction`."""
        names = [*found.metrics, *found.samples, *chain.from_iterable(found.pairs)]
        named = self.clean(names) != names
        data = b"\n".join(found.subject.files.values())
        if not named and (self.redactor is None or not self.redactor.holds(data)):
            return found
        what = "a metric's name" if named else "a measured file"
        why = f"{what} holds a value of a file of secrets; it is not kept"
        failed = {"name": "secrets", "ok": False, "code": "secret", "detail": why}
        return Measurement(
            "checked", (*found.checks, failed), diagnostics=found.diagnostics, evidence=found.evidence,
            wall_ms=found.wall_ms, cpu_ms=found.cpu_ms,
        )  # fmt: skip

    def seen(self, facts: Any) -> Any:
        """An observation without the values; as it was where there are none. Raises: RunError."""
        return self.redactor.value(facts) if self._values and self.redactor is not None else facts


class _Read(NamedTuple):
    """One file, as it was when it was last read."""

    mark: tuple[int, ...]
    values: Sequence[str] | None
    """None where it holds public keys alone."""
    content: Content | None
    """None where it cannot be read, or is empty."""


class Reader:
    """Reads files of secrets, each as often as it changes. `shown` are patterns of paths that are none."""

    def __init__(self, root: Path, shown: Collection[str] = ()) -> None:
        self._root, self._shown = root, shown
        self._place = str(root)
        self._known: dict[str, _Read] = {}
        self._last: tuple[Content, ...] = ()

    def read(self, paths: Collection[str]) -> tuple[tuple[str, ...], Set[str]]:
        """Those that are files of secrets, in order, and all values in them, of each file in turn, the
        shortest first: a file that holds thousands puts none of another's out of mind."""
        found: dict[str, _Read] = {}
        for path in sorted(paths):
            read = None if self.shows(path) else self._read(path)
            if read is not None and read.values is not None:
                found[path] = read
        self._known = {path: self._known[path] for path in found if path in self._known}
        values = [read.values or () for read in found.values()]
        self._last = tuple(read.content for read in found.values() if read.content is not None)
        return tuple(found), dict.fromkeys(_in_turn(values)).keys()

    def contents(self) -> tuple[Content, ...]:
        """What was in those that were read last."""
        return self._last

    def shows(self, path: str) -> bool:
        """Whether the operator says that it is none."""
        return any(fnmatchcase(path, pattern) for pattern in self._shown)

    def _read(self, path: str) -> _Read | None:
        try:
            info = os.lstat(f"{self._place}/{path}")
        except OSError:
            return None
        mark = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        known = self._known.get(path)
        if known is not None and known.mark == mark:
            return known
        try:
            data = beneath.read_beneath(self._root, path, secret_values.MAX_BYTES)
        except (UserError, OSError):
            data = b""
        if secret_values.is_public(path, data):
            read = _Read(mark, None, None)
        else:
            held = content(self._root, path) if info.st_size else None
            kept = Content(path, *held) if held is not None and held[1] else None
            read = _Read(mark, _in_order(secret_values.masked(path, data)), kept)
        settled = max(info.st_mtime_ns, info.st_ctime_ns) < time.time_ns() - _SETTLED_NS
        if settled and not stat.S_ISLNK(info.st_mode):  # what a link leads to may change alone
            self._known[path] = read
        return read


def _in_order(values: Iterable[str]) -> Sequence[str]:
    """The shortest first."""
    return sorted(values, key=lambda item: (len(item), item))


def _in_turn(values: Iterable[Sequence[str]]) -> Iterator[str]:
    """The first of each, then the second of each, and so on."""
    found = chain.from_iterable(zip_longest(*values))
    return (value for value in found if value is not None)


def found_in(root: Path, shown: Collection[str] = ()) -> tuple[tuple[str, ...], Set[str]]:
    """What to mask in a folder that no run has yet, and the values to keep out of records."""
    named = walk(root)
    paths, values = Reader(root, shown).read((*named, *other_names(root, named)))
    return masks(paths), values
