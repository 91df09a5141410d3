"""The links of one file: what each of its references leads to, how that was found, and what stays unknown.

Takes a Resolver and the facts of a file; gives edges, unresolved sites and what they depend on. An edge's
`how` says how far to trust it: `scope`, `import`, `self`, `super` are what the language itself does, `type`
rests on a declared type. `unique` and `few` are made by the queries, from names that stay unresolved.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spak.world import scan
from spak.world.facts import CLASSES, Body, split_root
from spak.world.resolve import Resolver
from spak.world.values import TYPED, Hit, Hits, steps_of, told_apart

Edge = tuple[str, str, str, str, str, tuple[int, ...]]
"""Caller's QUAL, callee's file and QUAL, how, role, lines. Roles: `call`, `ref`, `base`, `deco`, `set`,
`init` (the constructor of a class that is called), `over` (the member of a base that this one replaces),
`def` (the definition of a prototype)."""
Site = tuple[str, str, int]
"""Caller's QUAL, the name that could not be followed, the line."""


@dataclass(slots=True)
class Links:
    """What linking one file found."""

    edges: list[Edge] = field(default_factory=list)
    unresolved: list[Site] = field(default_factory=list)
    deps: frozenset[tuple[str, str]] = frozenset()


def link(path: str, body: Body, values: Resolver) -> Links:
    """The links of one file."""
    one = File(path, body, values)
    for caller, refs in body["refs"].items():
        for role, chain, *lines in refs:
            for part in chain.split("|"):
                one.follow(caller, one.scope_of(caller, role), role, part, lines)
    tests = scan.is_test(path) and not path.endswith(TYPED)
    for qual in body["spans"]:
        one.overrides(qual)
        one.defined(qual)
        if tests:
            one.fixtures(qual)
    found = [(*key, tuple(sorted(lines))) for key, lines in one.edges.items()]
    deps = frozenset([item for item in values.deps if item[0] != path])
    return Links(sorted(found), sorted(one.unresolved), deps)


class File:
    """One file under way. Chains may be followed one by one too: `edges` and `unresolved` grow."""

    def __init__(self, path: str, body: Body, values: Resolver) -> None:
        values.within(path, body["locals"])
        self.path = path
        self.body = body
        self.values = values
        self.edges: dict[tuple[str, str, str, str, str], set[int]] = {}
        self.unresolved: dict[Site, None] = {}
        self._hits: dict[tuple[str, str], Hits] = {}
        self._kinds = {qual: values.symbol(path, qual).get("k", "") for qual in body["spans"]}

    def scope_of(self, caller: str, role: str) -> str:
        """The scope in which a symbol's code looks up names; its bases and decorators are around it."""
        while self._kinds.get(caller) in ("variable", "constant"):
            caller = caller.rpartition(".")[0]
        return caller.rpartition(".")[0] if role in ("base", "deco") else caller

    def edge(self, caller: str, hit: Hit, role: str, lines: list[int]) -> None:
        """Note an edge, once for each pair, way and role."""
        if hit.target is not None and hit.target != (self.path, caller):
            self.edges.setdefault((caller, *hit.target, hit.how, role), set()).update(lines)

    def follow(self, caller: str, scope: str, role: str, chain: str, lines: list[int]) -> None:
        """The edges of each step of a chain."""
        root, rest = split_root(chain)
        steps = steps_of(rest)
        at = 1 if root == "super" and steps[:1] == ("()",) else 0
        known, count, done = self._hits, len(steps), root
        hits = known.get((scope, root))
        if hits is None:
            hits = known[scope, root] = self.values.root(self.path, scope, root)
        while True:
            called = at < count and steps[at] == "()"
            for hit in hits:
                if hit.target is not None:
                    self.edge(
                        caller, hit, "call" if called else role if role and at == count else "ref", lines
                    )
                if called and hit.value is not None and hit.value[0] in "CI":
                    self._constructor(hit, caller, lines)
            if at == count:
                return
            step = steps[at]
            done += step
            after = known.get((scope, done))
            if after is None:
                after = known[scope, done] = self.values.step(hits, step) if hits else ()
            after = told_apart(after, step, steps[at + 1 : at + 2] == ("()",))
            if not after:
                if step[0] == "." and not _outside(hits):
                    self.unresolved.update({(caller, step[1:], line): None for line in lines})
                return
            hits, at = after, at + 1

    def _constructor(self, hit: Hit, caller: str, lines: list[int]) -> None:
        assert hit.value is not None
        if hit.value[1].endswith(TYPED):
            return
        for name in ("__init__", "__new__", "__post_init__") if hit.value[0] == "C" else ("__call__",):
            for found in self.values.member(hit.value, name):
                if found.target is not None:
                    self.edge(caller, found._replace(how=hit.how), "init", lines)

    def fixtures(self, qual: str) -> None:
        """The fixtures that pytest calls for the parameters of a test or of another fixture."""
        about = self.values.symbol(self.path, qual)
        wanted = qual.rpartition(".")[2].startswith("test") or any(
            "fixture" in chain for chain in about.get("dec", ())
        )
        for name, _, star in about.get("params", ()) if wanted and about["k"] == "function" else ():
            for hit in self.values.fixture(self.path, name) if not star else ():
                self.edge(qual, hit, "call", [self.body["spans"][qual][0]])

    def defined(self, qual: str) -> None:
        """The definition of a prototype; without one, its callers name what is not known. So do those of a
        method that types may have without saying so."""
        flags, line = self.values.symbol(self.path, qual).get("flags", ""), self.body["spans"][qual][0]
        if "o" in flags:
            self.unresolved[qual, qual.rpartition(".")[2].partition("~")[0], line] = None
        if "d" not in flags:
            return
        found = self.values.definitions(self.path, qual)
        for target in found:
            self.edge(qual, Hit(None, target, "import"), "def", [line])
        if not found:
            self.unresolved[qual, qual.rpartition(".")[2].partition("~")[0], line] = None

    def overrides(self, qual: str) -> None:
        """The member of a base that this one replaces."""
        holder, _, name = qual.rpartition(".")
        if not holder or (name.startswith("__") and name.endswith("__")):
            return
        own: tuple[str, str] | None = (self.path, holder) if self._kinds.get(holder) in CLASSES else None
        if self.path.endswith(TYPED) and holder not in self._kinds:
            own = self.values.owner(self.path, holder)
        if own is None:
            return
        mro, name, lines = self.values.mro(*own)[1:], name.partition("~")[0], [self.body["spans"][qual][0]]
        for hit in self.values.inherited(("I", *own), mro, name) if mro else ():
            self.edge(qual, hit._replace(how="super"), "over", lines)
        method = self._kinds[qual] == "function" and self.values.symbol(*own).get("k") == "class"
        for hit in self.values.satisfied(*own, name) if self.path.endswith(".go") and method else ():
            self.edge(qual, hit, "over", lines)


def _outside(hits: Hits) -> bool:
    """Whether an expression is known to be something from outside of the tree."""
    kinds = {hit.value[0] for hit in hits if hit.value is not None}
    return kinds == {"E"}
