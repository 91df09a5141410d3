"""What a call of each tool of a run does, as facts: the paths that it uses, the program that it starts.

Takes an Action whose tool is known here, and the World; gives facts about it. A tool that is not known here
is described by its arguments alone, so that a policy can name it; nothing permits it by itself. What the
tool refuses by itself (a flag, a schema) is not judged a second time.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from spak.commandline import explain, places
from spak.commandline.readers import Read
from spak.datalog.values import Fact, Name
from spak.errors import UserError
from spak.policy.actions import TOO_MANY, Action, TextSeen, World

ACTION = Name("/action")
MAX_TEXT = 400
"""Characters of a string of the action that a fact keeps."""
MAX_ARGUMENTS = 128
MAX_DEPTH = 16
PATH_USES = frozenset({"reads", "edits", "writes", "deletes"})
"""What of `spak.lang.catalog.USES` says all that there is to say. A commit rests on more than its paths."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")

Builder = Callable[[Action, World], list[Fact]]


def unreadable(code: str, message: str) -> Fact:
    """The fact that denies an action which cannot be judged."""
    return ("unreadable", (ACTION, code, text(message)))


def text(found: str) -> str:
    """A string that any store can hold: cut, and without half surrogates."""
    cut = found[:MAX_TEXT]
    return cut if cut.isascii() else cut.encode("utf-8", "backslashreplace").decode()


def argument(action: Action, name: str, default: str | None = None) -> str | Fact:
    """A text argument, or the fact that it is none."""
    value = action.args.get(name, default)
    return value if isinstance(value, str) else unreadable("gate.args", f"`args.{name}` is not a string")


def use(how: str, path: str, world: World) -> Fact:
    """The path is used so; its place is where it leads."""
    seen = world.look(path)
    place = places.place(seen, how)
    return ("uses_path", (ACTION, Name("/" + how), Name("/" + place), text(seen.path)))


def files(**uses: str) -> Builder:
    """A tool each of whose named arguments is a path that is used so; a ? marks one that may be left out."""

    def build(action: Action, world: World) -> list[Fact]:
        found: list[Fact] = []
        for name, how in uses.items():
            if how.endswith("?") and action.args.get(name) is None:
                continue
            path = argument(action, name)
            found.append(use(how.rstrip("?"), path, world) if isinstance(path, str) else path)
        return found

    return build


def declared(action: Action, world: World, arguments_: Mapping[str, str]) -> list[Fact]:
    """The facts about a call of a tool that is described by what its entry declares.

    Each argument that is a path is a fact about that path, and `declares_use` says so to the law. A tool that
    runs or connects to something is not described by that alone: what it does needs a builder of its own.
    """
    found: list[Fact] = []
    for name, how in arguments_.items():
        kind, _, default = how.partition("=")
        optional = kind.endswith("?")
        kind = kind.rstrip("?")
        if kind == "text" or (optional and action.args.get(name) is None):
            continue
        if kind not in PATH_USES:
            return [unreadable("gate.args", f"`args.{name}` is more than a path that is used")]
        path = argument(action, name, default or None)
        if isinstance(path, str):
            found += [("declares_use", (ACTION, Name("/" + kind))), use(kind, path, world)]
        else:
            found.append(path)
    if odd := sorted(action.args.keys() - arguments_.keys()):
        found.append(unreadable("gate.args", f"`args.{odd[0][:80]}` is not declared"))
    return found


def listing(action: Action, world: World) -> list[Fact]:
    """The facts of a tool that lists a folder."""
    path = argument(action, "path", ".")
    return [use("reads", path, world) if isinstance(path, str) else path]


def tracked(action: Action, world: World) -> list[Fact]:
    """A commit: the paths that it takes in, or the whole workspace."""
    paths = action.args.get("paths", ["."])
    if not _texts(paths):
        return [unreadable("gate.args", "`args.paths` is not a list of strings")]
    return [use("tracks", path, world) for path in paths]


def code(action: Action, world: World) -> list[Fact]:
    """Code of any kind: only the sandbox says what it may do."""
    found = argument(action, "code")
    return [("runs_code", (ACTION,)) if isinstance(found, str) else found]


def compiler(suffix: Callable[[Mapping[str, object]], str]) -> Builder:
    """A compiler's tool: it reads its source and the folders of -I, and makes one file."""

    def build(action: Action, world: World) -> list[Fact]:
        source = argument(action, "source")
        if not isinstance(source, str):
            return [source]
        output = action.args.get("output") or posixpath.splitext(source)[0] + suffix(action.args)
        flags = action.args.get("flags") or []
        if not isinstance(output, str) or not _texts(flags):
            return [
                unreadable("gate.args", "`args.output` is not a string or `args.flags` is no list of them")
            ]
        found = [use("reads", source, world), use("writes", output, world)]
        return found + [use("reads", flag[2:], world) for flag in flags if flag.startswith("-I") and flag[2:]]

    return build


def line(action: Action, world: World) -> list[Fact]:
    """A command line for a shell."""
    command = argument(action, "command")
    return _line(action, command, world) if isinstance(command, str) else [command]


def program(action: Action, world: World) -> list[Fact]:
    """One program with its arguments, and the file that takes the verdict."""
    words = action.args.get("cmd")
    if isinstance(words, str) or (words and _texts(words)):
        found = _line(action, words, world)
    else:
        return [unreadable("gate.args", "`args.cmd` is not a list of strings")]
    if "verdict_file" in action.args:
        verdict = argument(action, "verdict_file")
        found.append(use("edits", verdict, world) if isinstance(verdict, str) else verdict)
    return found


def arguments(action: Action) -> list[Fact]:
    """The arguments of a tool that nothing else is known about."""
    found: list[Fact] = []
    listed = list(walk(action.args))
    if len({name for name, _ in listed}) < len(listed):
        return [unreadable("gate.args", "two arguments of one name, one of them within an object")]
    for name, value in listed:
        if isinstance(value, TextSeen) or (isinstance(value, str) and len(value) > MAX_TEXT):
            found.append(("cut_argument", (ACTION, text(name))))
        else:
            found.append(("argument", (ACTION, text(name), text(value) if isinstance(value, str) else value)))
        if len(found) > MAX_ARGUMENTS:
            return [unreadable("gate.args", f"more than {MAX_ARGUMENTS} arguments")]
    return found


def contained(action: Action, world: World) -> list[Fact]:
    """What a guarded agent changed: how many paths, and those that the call names. `cut_argument` says that
    it does not name all, as where a person takes changes back."""
    paths, changes = action.args.get("paths", ()), action.args.get("changes")
    if not isinstance(paths, (list, tuple)) or type(changes) is not int:
        return [unreadable("gate.args", "`args.paths` is not a list or `args.changes` is not a number")]
    named = [path for path in paths if isinstance(path, str) and len(path) <= MAX_TEXT]
    found: list[Fact] = [("argument", (ACTION, "changes", changes))]
    found += [("argument", (ACTION, "paths", text(path))) for path in named]
    return [*found, *([("cut_argument", (ACTION, "paths"))] if not named or changes != len(named) else [])]


def walk(value: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, str | int | float | TextSeen]]:
    """Every plain value within the arguments, with its name; those of lists and objects joined by dots."""
    if depth > MAX_DEPTH:
        raise UserError("gate.args", f"arguments nested more than {MAX_DEPTH} deep")
    if type(value) is str:  # most are
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from walk(item, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from walk(item, f"{name}.{index}", depth + 1)
    elif isinstance(value, bool):
        yield name, "true" if value else "false"
    elif isinstance(value, (str, int, float, TextSeen)):
        yield name, value


def _variable(name: object, value: object) -> bool:
    named = isinstance(name, str) and _VARIABLE.match(name) is not None
    return named and isinstance(value, str) and "\0" not in value


def _texts(found: object) -> bool:
    return isinstance(found, (list, tuple)) and all(isinstance(word, str) for word in found)


def _line(action: Action, asked: str | Sequence[str], world: World) -> list[Fact]:
    """What a command line starts, by its text or by the words of its one command."""
    folder, env = argument(action, "working_dir", ""), action.args.get("env", {})
    if not isinstance(folder, str):
        return [folder]
    if not isinstance(env, Mapping) or not all(_variable(name, value) for name, value in env.items()):
        return [unreadable("gate.args", "`args.env` is not an object of variables with texts")]
    found = explain.line(asked) if isinstance(asked, str) else explain.words(asked)
    if found.trouble is not None:
        return [unreadable(*found.trouble)]
    facts_: list[Fact] = [use("reads", folder, world)] if folder else []
    facts_ += [
        ("sets_variable", (ACTION, text(name), text(value))) for name, value in (*env.items(), *found.sets)
    ]
    for index, one in enumerate(found.started, 1):
        facts_.append(("runs_program", (ACTION, index, text(one.program))))
        facts_.append(("runs_words", (ACTION, index, text(" ".join((one.program, *one.words))))))
    facts_ += [("names_path", (ACTION, text(path))) for path in found.paths]
    return facts_ + (_outside(found, folder, world) if action.tool == "shell" else [])


def _outside(found: explain.Explained, folder: str, world: World) -> list[Fact]:
    """What is looked at of a line that no sandbox will hold: what programs of the table of readers read, and
    what redirections read and write."""
    facts_: list[Fact] = []
    for index, one in enumerate(found.started, 1):
        looked = [_reading(read, folder, world) for read in one.reads or ()]
        if one.reads is not None and None not in looked:
            facts_.append(("only_reads", (ACTION, index)))
        facts_ += [fact for facts_of in looked for fact in facts_of or ()]
    for read in found.reads:
        facts_ += _reading(read, folder, world) or ()
    return facts_ + [use("redirects", posixpath.join(folder, path), world) for path in found.writes]


def _reading(read: Read, folder: str, world: World) -> list[Fact] | None:
    """The paths that are read, each by its place; None where nobody can tell which they are."""
    whole = posixpath.join(folder, read.path)
    if not read.pattern:
        named: tuple[str, ...] = (whole,)
    else:
        named = world.spread(whole)
        if TOO_MANY in named or any(posixpath.relpath(path, folder or ".").startswith("-") for path in named):
            return None
    if read.there and any(world.look(path).kind == "missing" for path in named):
        return None
    facts_ = [_read_use("reads", path, world) for path in named]
    for top in named if read.walks else ():
        for path, kind in world.below(top):
            if path == TOO_MANY:
                return None
            if kind != "link":
                facts_.append(_read_use("walks", path, world))
    return facts_


def _read_use(how: str, path: str, world: World) -> Fact:
    """A path that is read outside of a sandbox: git's settings may hold credentials."""
    name, args = use(how, path, world)
    name_of = posixpath.basename(str(args[3]))
    kept = args[2] == Name("/git") and name_of.startswith(("config", "credentials"))
    return name, (*args[:2], Name("/secret"), args[3]) if kept else args


def _library(args: Mapping[str, object]) -> str:
    return "" if args.get("shared") is False else ".so"


BUILDERS: dict[str, Builder] = {
    "shell": line,
    "run": program,
    "nsight": program,
    "read_file": files(path="reads"),
    "read_ast": files(path="reads"),
    "list_files": listing,
    "write_file": files(path="edits"),
    "delete_file": files(path="deletes"),
    "instantiate": files(template="reads", path="edits"),
    "cc": compiler(_library),
    "nvcc": compiler(lambda args: ".cubin"),
    "python_repl": code,
    "recall": lambda action, world: arguments(action),
    "git_commit": tracked,
    "contained": contained,
}
