"""What of two trees differs, each path with its class; what is refused, and what a person has to sign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Protocol
from unicodedata import normalize

from spak import canon
from spak.door.classes import Around, Class, is_check, is_prose, named, other_versions
from spak.errors import RunError
from spak.secrets import contents, values, which
from spak.unseen import SIGNS, written_out

MAX_BYTES = 32 << 20
"""Bytes of a file in which a secret is looked for; a larger one needs a signature."""
MOST_SHOWN = 40
"""Paths of a class that `Leaving.text` names, but for those that are signed for."""
MOST_SIGNED = 500
"""Paths that one signature binds: more than a person is shown are signed by nobody."""
X = 0o100


class Node(Protocol):
    """A folder (d), file (f), link (l) or special file (s), as `spak.workspace.tree` has it."""

    @property
    def kind(self) -> str:
        """d, f, l or s."""

    @property
    def mode(self) -> int:
        """The bits of its permissions."""

    @property
    def digest(self) -> str:
        """Of its bytes, of its target, or of its list."""

    @property
    def size(self) -> int:
        """In bytes."""

    @property
    def children(self) -> Mapping[str, Node]:
        """What is in a folder, by name."""


def one_line(path: str) -> str:
    """A path as one line of text, whatever signs are in it."""
    return written_out(path).replace("\n", "\\x0a").replace("\t", "\\x09")


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs: `how` is A, M or D; None where there is no file before or after."""

    path: str
    how: str
    of: Class
    reason: str
    before: Node | None
    after: Node | None

    @property
    def shown(self) -> str:
        """The path as one line of text, whatever signs are in it."""
        return one_line(self.path)


@dataclass(frozen=True, slots=True)
class Leaving:
    """What would leave, in order of the paths."""

    base: str
    root: str
    changes: tuple[Change, ...]
    blocked: tuple[str, ...] = ()
    """Why nothing may leave, as the law says it."""

    def of(self, *classes: Class) -> tuple[Change, ...]:
        """The changes of these classes."""
        return tuple(change for change in self.changes if change.of in classes)

    @property
    def refused(self) -> tuple[Change, ...]:
        """What leaves by no signature."""
        return self.of(Class.SECRET, Class.ODD)

    @property
    def unsigned(self) -> tuple[Change, ...]:
        """What leaves when a person has signed for it by name."""
        return self.of(Class.RUNS)

    @property
    def leaves(self) -> tuple[Change, ...]:
        """What leaves when nothing is refused."""
        return self.of(Class.RUNS, Class.CHECKS, Class.ORDINARY)

    @property
    def digest(self) -> str:
        """What a signature binds: the base, the root, and each path with its class."""
        return canon.content_hash([self.base, self.root, [[one.shown, str(one.of)] for one in self.changes]])

    def by_own_tests(self) -> Leaving:
        """The same of a run whose check passes only with what it changed of its tests: these need a
        signature that names them, as what runs by itself does."""
        why = "a test, and with those of the beginning the check fails"
        tests = {one.path: replace(one, of=Class.RUNS, reason=why) for one in self.of(Class.CHECKS)}
        return replace(self, changes=tuple(tests.get(one.path, one) for one in self.changes))

    def require(self, signed: str = "", allowed: Collection[str] = ()) -> None:
        """Nothing, unless something must not leave. `signed` is the digest that a person signed, `allowed`
        are paths of class runs that one named.

        Raises: RunError `door.blocked`, `door.secret`, `door.odd`, `door.unsigned`.
        """
        if self.blocked:
            raise RunError("door.blocked", f"nothing leaves: {self.blocked[0]}", "fix it, then try again")
        for of, code, hint in _REFUSALS:
            if found := self.of(of):
                what = f"{found[0].shown}: {found[0].reason}{_more(found)}"
                raise RunError(code, f"this does not leave: {what}", hint)
        unsigned = [one for one in self.unsigned if one.path not in allowed]
        if len(unsigned) > MOST_SIGNED and signed:
            raise RunError(
                "door.unsigned",
                f"{len(unsigned)} files would run by themselves, and at most {MOST_SIGNED} are signed for",
                "bring them home by name, or let a run change fewer of them",
            )
        if unsigned and signed != self.digest:
            names = ", ".join(one.shown for one in unsigned[:5])
            raise RunError(
                "door.unsigned",
                f"not signed, and would run by itself: {names}{_more(unsigned, 5)}",
                "look at these files, then approve them by name",
            )

    def text(self) -> str:
        """The changes for people, what would run by itself first; one line for each path."""
        held = [f"may not leave as a commit: {reason}" for reason in self.blocked]
        return "\n".join((*held, *(line for of, head in _HEADS for line in _listed(head, self.of(of)))))


_REFUSALS = (
    (
        Class.SECRET,
        "door.secret",
        "take the secret out; name a file without secrets in `shown_secrets`",
    ),
    (Class.ODD, "door.odd", "take it out, or carry it over by hand"),
)
_HEADS = (
    (Class.RUNS, "would run by itself, needs a signature"),
    (Class.SECRET, "refused: secret"),
    (Class.ODD, "refused: odd"),
    (Class.CHECKS, "checks"),
    (Class.ORDINARY, "ordinary"),
    (Class.IGNORED, "stays: ignored by git"),
)


def look(
    before: Node,
    after: Node,
    read: Callable[[str], bytes],
    *,
    keep: Callable[[str], bool] = lambda _: True,
    holds: Callable[[bytes], bool] = lambda _: False,
    ignored: Callable[[str], bool] = lambda _: False,
    shown: Collection[str] = (),
    modes: bool = True,
    cased: bool = True,
    blocked: Sequence[str] = (),
) -> Leaving:
    """What differs, with classes. `keep` says of which paths: what stays behind makes no other ordinary;
    `holds` says whether bytes hold a known value of the run's secrets,
    `ignored` whether git ignores a path; `shown` are patterns of paths that hold no secret; `modes` whether
    modes count (core.fileMode), `cased` whether the folder tells cases apart; `blocked` the law's reasons."""
    around = Around(
        frozenset(name for name, node in before.children.items() if node.kind == "d"),
        lambda path: _at(after if keep(path) and not ignored(path) else before, path) is not None,
        lambda path: _at(before, path) is not None,
    )
    found = sorted((one for one in _differences(before, after, "", modes) if keep(one[0])), key=itemgetter(0))
    same = _composed if cased else _folded
    twins = frozenset() if cased and all(one[0].isascii() for one in found) else _twins(after, same)
    door = _Door(after, read, holds, ignored, shown, modes, around, twins)
    changes = tuple(door.change(*one) for one in found)
    return Leaving(before.digest, after.digest, changes, tuple(blocked))


def secret_in(path: str, data: bytes, old: bytes, holds: Callable[[bytes], bool]) -> str:
    """Why the contents of a file are secret, and were not before; else empty."""
    if holds(data) and not holds(old):
        return "it holds a value of a file of secrets"
    if is_check(path) or not which.NO_SECRETS_BELOW.isdisjoint(path.split("/")):
        return ""
    if which.is_code(path.rpartition("/")[2]):
        found = contents.found_in(data, code=not is_prose(path))
    else:
        found = which.finds(path, data)
    return "it holds what looks like a secret" if found - contents.found_in(old) else ""


@dataclass(frozen=True, slots=True)
class _Door:
    after: Node
    read: Callable[[str], bytes]
    holds: Callable[[bytes], bool]
    ignored: Callable[[str], bool]
    shown: Collection[str]
    modes: bool
    around: Around
    twins: frozenset[str]

    def change(self, path: str, before: Node | None, after: Node | None) -> Change:
        how = "A" if before is None else "D" if after is None else "M"
        of, reason = self._class(path, how, before, after)
        return Change(path, how, of, reason, before, after)

    def _class(self, path: str, how: str, before: Node | None, after: Node | None) -> tuple[Class, str]:
        if how == "A" and self.ignored(path):
            return Class.IGNORED, "git ignores it"
        if odd := self._odd(path, after):
            return Class.ODD, odd
        if after is None:
            if which.secret(path):
                return Class.RUNS, "a file of secrets goes away"
            if before is not None and before.kind == "l":
                return Class.RUNS, "a link goes away"
            return named(path, how, self.around)
        if not any(fnmatchcase(path, pattern) for pattern in self.shown) and (
            secret := self._secret(path, before, after)
        ):
            return Class.SECRET, secret
        if after.kind == "l":
            return Class.RUNS, "a link"
        new_x = self.modes and bool(after.mode & X) and not (before is not None and before.mode & X)
        of, reason = named(path, how, self.around, new_x=new_x)
        if how == "M" and not new_x and other_versions(path, self._old(before), self.read(after.digest)):
            return Class.ORDINARY, "other versions of packages that were there"
        if of is not Class.RUNS and after.size > MAX_BYTES:
            return Class.RUNS, "too large to look for secrets in it"
        return of, reason

    def _odd(self, path: str, after: Node | None) -> str:
        if any(map(which.of_git, path.split("/"))):
            return "something of a repository"
        if SIGNS.search(path) or any(sign in path for sign in "\t\n\r\\"):
            return "its name has signs that do not show"
        if path in self.twins:
            return "another name differs only by the case of letters, or by how they are composed"
        if after is not None and after.kind == "l":
            return self._leads_out(path, after)
        return "" if after is None or after.kind == "f" else "no file: a socket, a pipe or a device"

    def _leads_out(self, path: str, link: Node) -> str:
        """Why a link is none that stays inside, by its text: it may go through no other link."""
        target = self.read(link.digest).decode("utf-8", "surrogateescape")
        at = path.split("/")[:-1]
        if target.startswith("/"):
            return "a link that leads out"
        for part in target.split("/"):
            if part == ".." and not at:
                return "a link that leads out"
            if part == "..":
                at.pop()
            elif part not in ("", "."):
                at.append(part)
            node = _at(self.after, "/".join(at))
            if (node is not None and node.kind == "l") or which.of_git(part):
                return "a link through another, or into a repository"
        return "a link to a file of secrets" if which.secret("/".join(at)) else ""

    def _secret(self, path: str, before: Node | None, after: Node) -> str:
        """Why a file that is there after is a secret; else empty. What it held before had left already."""
        if self.holds(path.encode("utf-8", "surrogateescape")):
            return "its name holds a value of a file of secrets"
        if after.kind != "f" or after.size > MAX_BYTES:
            return "a file of secrets, by its name" if which.secret(path) else ""
        data = self.read(after.digest)
        if which.secret(path) and not values.is_public(path, data):
            return "a file of secrets, by its name"
        return secret_in(path, data, self._old(before), self.holds)

    def _old(self, before: Node | None) -> bytes:
        known = before is not None and before.kind == "f" and before.size <= MAX_BYTES
        return self.read(before.digest) if before is not None and known else b""


def _differences(
    before: Node, after: Node, above: str, modes: bool
) -> Iterator[tuple[str, Node | None, Node | None]]:
    """Files, links and special files that are not the same in both folders."""
    for name in before.children.keys() | after.children.keys():
        old, new, path = before.children.get(name), after.children.get(name), f"{above}{name}"
        if old is new or (old is not None and new is not None and _same(old, new, modes)):
            continue
        if old is not None and new is not None and old.kind == new.kind == "d":
            yield from _differences(old, new, f"{path}/", modes)
            continue
        one, other = _leaves(old, path), _leaves(new, path)
        yield from ((at, one.get(at), other.get(at)) for at in one.keys() | other.keys())


def _same(old: Node, new: Node, modes: bool) -> bool:
    if (old.kind, old.digest) != (new.kind, new.digest):
        return False
    return old.kind != "f" or not modes or old.mode & X == new.mode & X


def _leaves(node: Node | None, path: str) -> dict[str, Node]:
    """What is not a folder at a path and below it."""
    if node is None:
        return {}
    if node.kind != "d":
        return {path: node}
    below = (_leaves(child, f"{path}/{name}") for name, child in node.children.items())
    return {at: leaf for found in below for at, leaf in found.items()}


def _at(root: Node, path: str) -> Node | None:
    node: Node | None = root
    for part in path.split("/") if path else ():
        node = node.children.get(part) if node is not None else None
    return node


def _twins(root: Node, same: Callable[[str], str]) -> frozenset[str]:
    """Files at which, or at a folder above which, `same` makes one of two names."""
    found: set[str] = set()
    count = Counter(map(same, root.children))
    for name, node in root.children.items():
        if count[same(name)] > 1:
            found.update(_leaves(node, name))
        elif node.kind == "d":
            found.update(f"{name}/{path}" for path in _twins(node, same))
    return frozenset(found)


def _composed(name: str) -> str:
    """What is shown of a name: a letter with a mark is one sign or two."""
    return name if name.isascii() else normalize("NFC", name)


def _folded(name: str) -> str:
    """What a folder makes of a name that tells no cases apart."""
    return _composed(_composed(name).casefold())


def _more(found: Sequence[Change], shown: int = 1) -> str:
    return f", and {len(found) - shown} more" if len(found) > shown else ""


def _listed(head: str, found: Sequence[Change]) -> Iterator[str]:
    if found:
        yield f"{head} ({len(found)})"
        most = MOST_SIGNED if found[0].of is Class.RUNS else MOST_SHOWN
        yield from (f"  {one.how} {one.shown}  {one.reason}" for one in found[:most])
        if len(found) > most:
            yield f"  and {len(found) - most} more"
