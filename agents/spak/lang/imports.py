"""IMPORT, POLICY and the problems of validators: a spec put together with the files that it names.

`resolve(parsed, read)` takes a Parsed and a reader of files, given from outside: it takes a path relative to
the spec's folder and gives the bytes, or None where there is no such file. It gives one Parsed whose text is
self-contained, the policy's text, and the texts of the files for whoever prints findings. It opens nothing.

What a file gives stands at the end of the AGENT (or of a file of bare tasks), after what is declared there:

1. each file once, in the order in which the imports are met, each before the files that it imports itself;
2. SYSTEM_MODELs whole; of its tasks those that an edge or START leads to, directly or through other imported
   tasks (all of them where the importing file has no task of its own to start from);
3. the IMPORT itself, and what is not taken over, become blanks, so that all else keeps its place.

Paths are relative to the file that holds the IMPORT and stay beneath its folder; a problem's file
(`VALIDATOR CpuProfiler { problem: "problems/rmsnorm.py" }`) is named from the spec's folder everywhere.
Findings name the file that they are about: the new text's Source knows which stretch came from where
(`ast.Origin`). The text that comes out has no IMPORT in it: it is what a genesis record holds, and it means
the same without any file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from spak import paths
from spak.errors import UsageError
from spak.lang import ast, settings
from spak.lang.diagnostics import Diagnostic, Edit, Severity, in_order
from spak.lang.limits import MAX_BYTES
from spak.lang.limits import MAX_IMPORT_DEPTH as MAX_DEPTH
from spak.lang.limits import MAX_IMPORTED_FILES as MAX_FILES
from spak.lang.parser import Parsed, parse

Reader = Callable[[str], bytes | None]
"""The bytes of a file by its path relative to the spec's folder; None where it is not there."""


class Unreadable(Exception):
    """A reader's refusal: the file is there and is not given. The text says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A spec with its imports. Where files were put together, `texts` has the text of each under the name
    that findings use, the spec's own under the empty one. `policy` is empty where there is none."""

    parsed: Parsed
    policy: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    """The texts of problems' files, by the name that a validator's options give them."""


def resolve(parsed: Parsed, read: Reader) -> Resolved:
    """The spec with its imports put in; what is wrong with them is among its diagnostics."""
    loader = _Loader(parsed, read)
    policy = loader.policy()
    loader.problems_of(parsed)
    if not any(True for _ in _imports(parsed.spec)) and not loader.found:
        return Resolved(parsed, policy, problems=loader.problems)
    loader.load(parsed, ())
    for item in list(loader.files.values()):
        loader.problems_of(item)
    texts = {item.name: item.text for item in loader.files.values()}
    return Resolved(loader.joined(), policy, {"": parsed.text, **texts}, loader.problems)


def settings_of(spec: ast.Spec, *keys: str) -> Iterator[ast.Entry]:
    """The settings of the agent, or of the file, with one of those keys."""
    agent = spec.agent
    for item in (*spec.items, *(agent.items if agent else ())):
        if isinstance(item, ast.Entry) and item.key.upper() in keys:
            yield item


def _imports(spec: ast.Spec) -> Iterator[ast.Entry]:
    return settings_of(spec, "IMPORT")


def _outside(spec: ast.Spec) -> Iterator[ast.Entry]:
    """The imports of a file that has no AGENT, or should not have one."""
    return (item for item in spec.items if isinstance(item, ast.Entry) and item.key.upper() == "IMPORT")


def _problem_files(spec: ast.Spec) -> Iterator[ast.Entry]:
    """The options `problem: "FILE.py"` of the validators of its tasks."""
    for task in spec.tasks():
        for item in task.items:
            if isinstance(item, ast.Entry) and isinstance(item.value, ast.Tagged) and item.value.body:
                for option in item.value.body.entries:
                    value = option.value
                    named = isinstance(value, ast.Text) and value.value.endswith(".py") and not value.long
                    if item.key.upper() == "VALIDATOR" and option.key == "problem" and named:
                        yield option


class _Loader:
    def __init__(self, main: Parsed, read: Reader) -> None:
        self.main = main
        self.read = read
        self.folder = main.name[: main.name.rfind("/") + 1]
        self.files: dict[str, Parsed] = {}
        """By path relative to the main file's folder, in order."""
        self.found: list[Diagnostic] = []
        self.problems: dict[str, str] = {}
        self.missing = False
        self.blanks: dict[str, list[ast.Task | ast.Entry | ast.Agent]] = {}

    # ---- reading

    def load(self, parsed: Parsed, stack: tuple[str, ...]) -> None:
        """Read what a file imports, and what that imports; `stack` has the paths that led here."""
        folder = stack[-1][: stack[-1].rfind("/") + 1] if stack else ""
        fresh: list[str] = []
        for entry in _imports(parsed.spec) if parsed is self.main else _outside(parsed.spec):
            path = self.path(parsed, entry)
            if not path:
                continue
            path = folder + path
            way = (self.main.name[len(self.folder) :], *stack)
            if path in way:
                message = f"IMPORT goes round: {' -> '.join((*way[way.index(path) :], path))}"
                hint = "take one of these IMPORTs out, or move what both need to a third file"
                self.report(parsed, "lang.import_cycle", message, hint, entry.value)
            elif len(stack) >= MAX_DEPTH or (len(self.files) >= MAX_FILES and path not in self.files):
                message = f"more than {MAX_FILES} files, or IMPORT nested deeper than {MAX_DEPTH}"
                self.report(
                    parsed, "lang.import_depth", message, "put some of the files together", entry.value
                )
            elif path not in self.files and (data := self.bytes(parsed, entry, path)) is not None:
                self.files[path] = parse(data, self.folder + path)
                fresh.append(path)
        for path in fresh:
            self.judge(path)
            self.load(self.files[path], (*stack, path))

    def path(self, parsed: Parsed, entry: ast.Entry) -> str:
        """The plain path that an entry names, relative to its file; empty, and told, when it is none."""
        value, hint = entry.value, f'for example: {entry.key.upper()} "shared/model.spak"'
        if not isinstance(value, ast.Text) or value.long or entry.default is not None:
            if not isinstance(value, ast.Name) or value.value:  # else the parser told that it is missing
                message = f"{entry.key.upper()} wants a file's name in quotes"
                self.report(parsed, "lang.import_path", message, hint, entry)
            return ""
        try:
            parts = paths.normalise(value.value)
            if value.value.startswith("/") or "\\" in value.value or not parts:
                raise UsageError("path.absolute", "no path relative to this file")
        except UsageError as error:
            message = f"{entry.key.upper()}: {error.message}"
            hint = "a file is named relative to the one that names it, and lies in its folder or below"
            self.report(parsed, "lang.import_path", message, hint, value)
            return ""
        return paths.join(parts)

    def bytes(self, parsed: Parsed, entry: ast.Entry, path: str) -> bytes | None:
        try:
            data = self.read(path)
        except Unreadable as error:
            self.report(parsed, "lang.import_path", f"'{path}' {error}", "name another file", entry.value)
            return None
        if data is None:
            hint = f"no file {self.folder}{path}: check the name"
            self.report(parsed, "lang.import_missing", f"there is no file '{path}'", hint, entry.value)
        return data

    def judge(self, path: str) -> None:
        """What an imported file must not hold is told and left out."""
        parsed = self.files[path]
        if not parsed.ok:
            self.missing = True
        for item in parsed.spec.items:
            if isinstance(item, ast.Agent):
                message, hint = (
                    f"an imported file holds an AGENT '{item.name}'",
                    "give it SYSTEM_MODELs and tasks",
                )
                self.report(parsed, "lang.import_content", message, hint, item.start + 1)
            elif isinstance(item, ast.Entry) and item.key.upper() == "IMPORT":
                pass
            elif isinstance(item, ast.Entry) and settings.find("agent", item.key) is not None:
                message = f"an imported file sets {item.key.upper()}"
                hint = "settings belong to the importing file; a file gives SYSTEM_MODELs and tasks"
                self.report(parsed, "lang.import_content", message, hint, item.start)
            else:
                continue
            self.blanks.setdefault(path, []).append(item)

    def policy(self) -> str:
        """The text of POLICY: what stands in triple quotes, or in the file that is named."""
        entry = next(settings_of(self.main.spec, "POLICY"), None)
        if entry is None or not isinstance(entry.value, ast.Text):
            return ""  # the outline tells a value of another kind
        if entry.value.long:
            return entry.value.value
        path = self.path(self.main, entry)
        return self.text(self.main, entry, path, "policy") or ""

    def problems_of(self, parsed: Parsed) -> None:
        """Read the files of problems that the validators of a file's tasks name."""
        for entry in _problem_files(parsed.spec):
            name = entry.value.value if isinstance(entry.value, ast.Text) else ""
            path = self.path(parsed, entry) if name not in self.problems else ""
            text = self.text(parsed, entry, path, "problem")
            if text is not None:
                self.problems[name] = text

    def text(self, parsed: Parsed, entry: ast.Entry, path: str, what: str) -> str | None:
        """The text of a file that an entry names; None, and reported, where it is none."""
        data = self.bytes(parsed, entry, path) if path else None
        if data is None:
            return None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text or len(data) > MAX_BYTES:
            hint = f"it is at most {MAX_BYTES // 1024} KB of UTF-8"
            self.report(parsed, "lang.import_path", f"'{path}' is no {what}'s text", hint, entry.value)
            return None
        return text

    # ---- joining

    def joined(self) -> Parsed:
        """The one text, parsed; the main file as it is where something keeps the two apart."""
        self.collide()
        whole = None if not self.main.ok else self.put_together()
        if whole is None:
            whole = parse(self.main.text, self.main.name)
            self.missing = True
        source = whole.spec.source
        source.partial = self.missing or any(item.severity is Severity.ERROR for item in self.found)
        inside = [
            replace(item, file=parsed.name) for parsed in self.files.values() for item in parsed.diagnostics
        ]
        source.problems = in_order([*self.main.diagnostics, *inside, *self.found])
        return whole

    def collide(self) -> None:
        """A task that two files define is told where the later one stands, which is left out."""
        first: dict[str, tuple[Parsed, ast.Task]] = {}
        for path, parsed in (("", self.main), *self.files.items()):
            for task in self.tasks(parsed):
                owner, other = first.setdefault(task.name, (parsed, task))
                if owner is not parsed and task.name:
                    where = f"{owner.name or 'the importing file'}:{owner.spec.source.line(other.start)}"
                    message = f"a second task '{task.name}', from an imported file"
                    hint = f"the first is at {where}: rename one of them"
                    self.report(parsed, "lang.import_collision", message, hint, task.start + 1)
                    self.blanks.setdefault(path, []).append(task)
        self.leave_out({name: task for name, (_, task) in first.items()})

    def tasks(self, parsed: Parsed) -> list[ast.Task]:
        """The tasks of a file; of an imported one those outside of an AGENT."""
        items = parsed.spec.tasks() if parsed is self.main else parsed.spec.items
        return [item for item in items if isinstance(item, ast.Task)]

    def leave_out(self, known: Mapping[str, ast.Task]) -> None:
        """Blank the imported tasks that nothing leads to."""
        own = list(self.main.spec.tasks())
        if not own and self.main.spec.agent is None:
            return
        queue = [item.name for item in own]
        agent = self.main.spec.agent
        queue += [item.target for item in (agent.items if agent else ()) if isinstance(item, ast.Start)]
        wanted: set[str] = set()
        while queue:
            name = queue.pop()
            if name not in known:
                return  # told later, perhaps with the name of a task that would be left out here
            if name in wanted:
                continue
            wanted.add(name)
            for item in known[name].items:
                if isinstance(item, ast.Next):
                    queue += [edge.target for edge in item.items]
        for path, parsed in self.files.items():
            idle = [task for task in self.tasks(parsed) if task.name not in wanted]
            self.blanks.setdefault(path, []).extend(idle)

    def put_together(self) -> Parsed | None:
        source, agent = self.main.spec.source, self.main.spec.agent
        text = _blanked(self.main, list(_imports(self.main.spec)))
        cut = len(text) if agent is None else source.tokens.starts[agent.end - 1]
        origins = [ast.Origin(0, cut, 0, "", source.lines)]
        parts, size = [text[:cut]], cut
        for path, parsed in self.files.items():
            if not parsed.ok:
                continue
            head = f"\n// from {path}\n"
            start = size + len(head)
            end = start + len(parsed.text)
            parts += [head, _blanked(parsed, self.blanks.get(path, [])), "\n"]
            size = end + 1
            origins.append(ast.Origin(start, end, 0, parsed.name, parsed.spec.source.lines))
        origins.append(ast.Origin(size, size + len(text) - cut, cut, "", source.lines))
        whole = parse("".join([*parts, text[cut:]]), self.main.name)
        if not whole.ok:  # each file parsed by itself, so it is the size, or brackets one level too deep
            found = whole.diagnostics[0]
            last = list(_imports(self.main.spec))[-1]
            self.report(self.main, found.code, f"with its imports: {found.message}", found.hint, last)
            return None
        whole.spec.source.origins = tuple(origins)
        return whole

    def report(
        self,
        parsed: Parsed,
        code: str,
        message: str,
        hint: str,
        at: ast.Value | ast.Entry | int,
        fix: tuple[Edit, ...] | None = None,
    ) -> None:
        source = parsed.spec.source
        first, last = (at, at + 1) if isinstance(at, int) else (at.start, at.end)
        found = source.diagnostic(Severity.ERROR, code, message, hint, *source.offsets(first, last), fix)
        self.found.append(found if parsed is self.main else replace(found, file=parsed.name))


def _blanked(parsed: Parsed, nodes: list[ast.Task | ast.Entry | ast.Agent] | list[ast.Entry]) -> str:
    """The text with nodes replaced by blanks, lines kept."""
    text, done, parts = parsed.text, 0, []
    for start, end in sorted(parsed.spec.source.offsets(node.start, node.end) for node in nodes):
        if start >= done:
            parts += [text[done:start], re.sub(r"[^\n]", " ", text[start:end])]
            done = end
    return "".join([*parts, text[done:]])
