"""The judge of a command line: what is known of it so far, and what one simple command does.

Takes a command with those before it on the line; notes deeds and paths (spak.commandline.findings), the
folder and the variables that later commands see. The order of commands is flow.py's. What the words of a
program mean is read by Programs, which are given from outside: some of them read a command line again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spak.commandline import environment, lists, places, table
from spak.commandline.findings import Findings, Reading
from spak.commandline.table import Grammar, Option
from spak.commandline.words import (
    HARMLESS_VARIABLES,
    READERS_OF_PIPES,
    Arg,
    Known,
    arg,
    combined,
    spread,
    variables,
)
from spak.commandline.world import Eyes as World
from spak.shell import Command, Redirection, Substitution, Word

MAX_WRAPPED = 32
"""Commands that each run the next, as timeout, env and xargs do."""

_HIDDEN = lists.pattern("findings", "hidden_variables")
_BINDERS = lists.names("judge", "binders")
_OWN = lists.pattern("words", "set_by_shells")
_ASKS = re.compile(r"(test|\[\[?) -[nz] \$( \]\]?)?")
"""Commands that only ask whether a variable has a value."""
_TRACES = re.compile(r"((builtin|command|time) )*set (.* )?(-\w*x|\$)")
"""Commands after which a shell may show what it runs."""
_USUAL = lists.pattern("words", "usual_values").fullmatch
_CONTENT, _DISGUISE = (lists.pattern("judge", key).fullmatch for key in ("shows_contents", "disguises"))


@dataclass(slots=True)
class Parsed:
    """The words of a command, sorted by its table."""

    given: list[tuple[Option, list[Arg]]] = field(default_factory=list)
    operands: list[Arg] = field(default_factory=list)
    after: list[Arg] = field(default_factory=list)
    """The words that are not looked at: a verb's, or another command's."""
    fits: bool = True
    first_after_dashes: int = -1
    """Which operand is the first after `--`; -1 without one."""

    def names(self) -> set[str]:
        """The options that were given."""
        return {option.name for option, _ in self.given}

    def values(self, *names: str) -> list[Arg]:
        """The values of some options, in the order given."""
        return [value for option, values in self.given if option.name in names for value in values]


@dataclass(frozen=True, slots=True)
class Programs:
    """What reads the words of single programs."""

    interpret: Callable[[Judge, Grammar, list[Arg]], None]
    """A program of the tables, with its words."""
    readers: Mapping[str, Callable[[Judge, Grammar, list[Arg]], None]]
    """By name: programs whose words are a language."""
    code: Mapping[str, Callable[[Judge, Grammar, Arg, Parsed], None]]
    """By kind: code that a program is given as one of its words."""
    listed: Callable[[Judge, Sequence[Command]], None]
    """Commands whose output is read as paths."""
    added: Mapping[str, Grammar] = field(default_factory=dict)
    """Programs that no shipped table knows, by the tables that were added."""

    def grammar(self, name: str) -> Grammar | None:
        """The grammar of a program by its name; no added table comes before one that ships."""
        return table.grammar(name) or self.added.get(name)


class Judge(Findings):
    """One pass over the commands of a line; knows the variables and the folder that the line has set."""

    def __init__(self, world: World, reading: Reading, programs: Programs) -> None:
        super().__init__(world, reading, lambda feed: programs.listed(self, feed))
        self.programs = programs
        self.known: Known = {}
        self.before: Sequence[Command] = ()
        """The commands before the present one on its line."""
        self.loose = False
        """Whether a change of folder may or may not have happened for what comes after."""
        self.given: set[str] = set()
        """Variables that the line itself has read."""
        self.depth = 0
        self.walked = 0
        self.last = False
        """True for the command that ends the whole line."""
        self.been = [""]
        """Every folder that the line has stood in."""
        self.wrapped = 0
        self.stdin: Arg | None = None
        """The file that the command reads as its input, where the line names one."""
        self.body: str | None = None
        """The text that the command gets as its input, where the line holds it."""
        self.fed = False
        """True where its input comes from another command, a file or the line."""

    def starts(self, folder: str, env: Mapping[str, str]) -> None:
        """Where the line is run and with which variables: judged as `cd` and as `VAR=x` before a command."""
        if folder:
            self.path("reads", Arg(folder, (folder,), tilde=folder.startswith("~")))
            self.folders = self.been = [folder]
        for name, value in env.items():
            found = Arg(value, (value,))
            self.assign(name, [found], True, False)
            self.known[name] = replace(found, glob=any(char in value for char in "*?["), literal=False)

    def bound(self, args: Sequence[Arg]) -> None:
        """`read`, `export` and their kin leave variables that are not known."""
        first, items = args[0].text, args[1:]
        if first == "printf":
            items = items[:2] if items and (items[0].text or "-v").startswith("-v") else ()
        for item in items if first in _BINDERS else ():
            for name, sign, value in (text.partition("=") for text in item.texts):
                # `read -ra name` and `printf -v name` may be written as one word
                starts = [0] if name[:1] != "-" else [2] if first == "printf" else range(len(name))
                for bound in (name[start:].rstrip("+") for start in starts if sign or first != "export"):
                    self.given.add(bound)
                    self.known.pop(bound, None)
                    other = bound in HARMLESS_VARIABLES and not (sign and _USUAL(value))
                    if other or (first in ("read", "printf") and environment.matters(bound)):
                        self.deed("sets_environment", bound, "programs go by this variable")
            if not item.texts:
                self.known = {}

    def change_folder(self, name: str, rest: list[Arg]) -> None:
        """`cd`, `pushd` and `popd`. A shell takes `..` from the name that it went by."""
        targets = [item for item in rest if item.text not in ("--", "-L")]
        goal = targets[0].text if len(targets) == 1 and not targets[0].glob else None
        back = name == "popd" or (goal is not None and re.match(r"-\Z|[-+]\d+\Z", goal) is not None)
        if len(self.been) < 2 if back else goal is None:
            self.deed("unknown_word", name, "a folder that is not written out")
            return
        self.deed("computes", name)
        if back or goal is None:  # to one of those before
            self._enter(list(self.been))
            return
        stays = any(self.world.look(f"./{old}/{goal}").place == "inside" for old in self.folders)
        if not (self.last and stays and set(goal.rstrip("/").split("/")) == {".."}):
            self.path("reads", targets[0])  # else it goes back, and nothing is done there
        moved = [posixpath.normpath(posixpath.join(old, goal)) for old in self.folders]
        moved = ["" if path == "." else path for path in moved]
        self._enter([*self.folders, *moved] if self.loose else moved)

    def _enter(self, folders: list[str]) -> None:
        self.folders = list(dict.fromkeys(folders))[:9]
        if len(self.folders) > 8:
            self.deed("not_understood", "cd", "too many changes of the folder")
        self.been = list(dict.fromkeys([*self.been, *self.folders]))[:8]
        self.known = {name: found for name, found in self.known.items() if not found.here}

    def command(self, command: Command) -> None:
        """Read one command: its assignments, redirections and program."""
        for assignment in command.assignments:
            if assignment.name == "IFS" and command.words and command.words[0].value == "read":
                continue  # for this one reading of a line
            head = bool(command.path) and command.path[-1][0] == "for"
            values = [arg(word, self.known, False) for word in assignment.values if not head]
            values += [form for word in assignment.values if head for form in spread(word, self.known)]
            self._odd(values)
            if assignment.name:
                self.assign(assignment.name, values, bool(command.words), assignment.append)
        self.stdin = self.body = None
        piped = command.operator in ("|", "|&")
        self.fed = piped
        self._secrets(command)
        for redirection in command.redirections:
            self._redirect(command, redirection)
        args = [item for word in command.words for item in spread(word, self.known)]
        self._odd(args)
        if not args:
            self.deed("computes", "assignment" if command.assignments else "redirection")
        elif piped and args[0].text in ("sh", "bash", "zsh", "dash", "ksh", "fish"):
            self.deed("executes", args[0].text or "", "a shell that runs what it is sent")
        else:
            if any(map(_CONTENT, map(_written, self.before if piped else ()))) and _DISGUISE(
                _written(command)
            ):
                self.deed("unknown_word", args[0].text or "", "what git keeps, in a form that nobody reads")
            self.run(args)

    def _secrets(self, command: Command) -> None:
        """Notes variables that are called as secrets are, unless the line gave them their value or only asks
        whether they have one."""
        traced = any(map(_TRACES.match, map(_written, self.before)))
        if _ASKS.fullmatch(_written(command)) and not traced:
            return
        for part in variables(command):
            asks = re.match(r"\$\{(#|\w+:?\+)", part.text)
            set_here = part.name in self.known or part.name in self.given
            if not set_here and _HIDDEN.match(part.name) and not asks:
                why = "a variable that the line does not set: it may be a secret"
                self.deed("shows_environment", part.text, why)

    def _odd(self, args: list[Arg]) -> None:
        if any(item.odd for item in args):
            self.deed("not_understood", "expansion", "it can run commands, or make very many words")

    def assign(self, name: str, values: list[Arg], for_one: bool, append: bool) -> None:
        """Note an assignment, and why it could change what a later command does."""
        texts = [text for value in values for text in value.texts]
        usual = for_one or all(value.number or all(map(_USUAL, value.texts or "$")) for value in values)
        if name in HARMLESS_VARIABLES and not usual:
            self.deed("sets_environment", name, "a variable that shells give a value")
        why = environment.trouble(name, texts, self.is_there)
        if for_one and not all(value.texts or value.number for value in values):
            why = why or "a value that is not known before the line runs"
        if why is not None and (for_one or environment.matters(name)):
            self.deed("sets_environment", name, why)
        if for_one or environment.is_path_list(name):
            self.paths_of(name, texts)
        if for_one or _OWN.fullmatch(name):  # which a shell changes by itself
            return
        found = combined("$" + name, values)
        self.known[name] = replace(found, texts=(), number=False) if append else found

    def paths_of(self, name: str, values: Sequence[str]) -> None:
        """The paths in the values of a variable that programs get: who knows which of them are run."""
        for part in filter(None, ":".join(values).split(":")):
            listed = environment.is_path_list(name)
            if part != f"${name}" and (listed or self.is_there(part)):
                self.path("runs", Arg(part, (part,), tilde=part.startswith("~")))
            if not listed and self.is_there(part):
                self.use("moves", part)  # it may be replaced
            if re.fullmatch(r"\w+(\.\w+)+", part):
                self.use("runs", part.replace(".", "/") + ".py")

    def is_there(self, text: str) -> bool:
        """Whether a word is a path with a folder, a file or folder there, or what the line made."""
        made = {use.path for use in self.reading.uses if use.how in ("writes", "redirects")}
        return re.fullmatch(r"[\w-]+(/[\w.-]+)+", text) is not None or any(
            seen.place == "inside" and (seen.kind != "missing" or seen.path in made)
            for seen in map(self.world.look, self.wholes(text))
        )

    def _redirect(self, command: Command, found: Redirection) -> None:
        op, target = found.op, arg(found.target, self.known)
        body = arg(found.body, self.known) if found.body is not None else Arg("")
        if op.startswith("<") and found.fd in ("", "0"):  # the last one counts
            self.fed = True
            self.stdin, self.body = target if op == "<" else None, body.text
        self._odd([target, body])
        duplicates = op in (">&", "<&") and target.text is not None and re.match(r"\d?-?\Z", target.text)
        if op in ("<<", "<<-", "<<<") or duplicates or (op == "<" and _reads_output(command, found.target)):
            return
        if any(isinstance(part, Substitution) for part in found.target.parts):
            self.deed("not_understood", found.target.text, "a redirection into another command")
        elif target.text is not None and re.match(r"/dev/(tcp|udp)/", target.text):
            self.deed("connects", target.text, "a network connection of the shell")
        elif target.glob:
            self.deed("unknown_word", target.written, "a pattern as the target of a redirection")
        else:
            for how in {"<>": ("reads", "redirects"), "<": ("reads",), "<&": ("reads",)}.get(
                op, ("redirects",)
            ):
                self.path(how, target)

    # ---- one command

    def run(self, args: Sequence[Arg]) -> None:
        """One command: its name is known or nothing of it is permitted."""
        self.wrapped += 1
        if self.wrapped > MAX_WRAPPED:
            self.deed("not_understood", args[0].written, "commands that run commands, nested too deeply")
        else:
            self._run(args)
            self.bound(args)
        self.wrapped -= 1

    def _run(self, args: Sequence[Arg]) -> None:
        head, rest = args[0], list(args[1:])
        if head.text is None or not head.literal or head.glob or head.tilde:
            self.deed("unknown_word", head.written, "the name of the program is not written out")
            return
        folder, slash, name = head.text.rpartition("/")
        listed = self.programs.grammar(name)
        if re.match(r"[A-Za-z_]\w*\+?=", head.text):  # `time` is a word of the shell, after which it assigns
            self.deed("not_understood", head.text, "an assignment where a program should be")
        elif slash and folder + slash not in STANDARD_FOLDERS:
            self._own_program(head.text, name, rest)
        elif name in ("cd", "pushd", "popd"):
            self.change_folder(name, rest)
        elif listed is not None:
            self.programs.interpret(self, listed, rest)
        elif self.only_asks(rest):
            self.deed("computes", name, "a version or a help text")
        else:
            self.deed("unknown_binary", name, "nothing is known about this program")

    def _own_program(self, name: str, last: str, rest: list[Arg]) -> None:
        """A program by its path: the workspace's own, or a known one from an environment in it."""
        if "://" in name:
            self.deed("connects", name, "a program from an address")
        self.use("runs", name)
        if re.search(r"(^|/)(\.?venv|env|\.tox/[^/]+|node_modules/\.bin|vendor/bin)(/bin)?/[^/]+\Z", name):
            self.run([Arg(last, (last,)), *rest])
        elif self.known_by_path(name, rest):
            return
        elif places.is_data(name):
            self.deed("executes", name, "a file of text or data is run as a program")
        else:
            self.deed("builds", name, "the project's own program")
            self.takes_code(name, rest)
            self.plain_paths(rest)

    def only_asks(self, rest: Sequence[Arg]) -> bool:
        """True for a lone --version or --help; what reads its input may run that all the same."""
        return not self.fed and len(rest) == 1 and rest[0].text in ("--version", "--help", "-V", "-version")

    def known_by_path(self, path: str, rest: Sequence[Arg]) -> bool:
        """Judges a program by the last part of its path where that is one of those that run or fetch what
        they are given, wherever it lies: `.nox/x/bin/python`, `npm/bin/npm-cli.js`, `gradlew`."""
        found = _KNOWN.fullmatch(re.sub(r"/__main__\.pyc?\Z", "", path))
        last = posixpath.basename(path)
        if not found and (last in _MAY_BE_OWN or table.grammar(last) is None):
            return False
        name = _WRAPPERS.get(found[1], found[1]) if found else last
        self.run([Arg(name, (name,)), *rest])
        return True

    def takes_code(self, name: str, rest: Sequence[Arg]) -> None:
        """Notes code that a program of the project is given: in a word, or as its input."""
        stem = posixpath.basename(name).partition(".")[0]
        verbs = {item.text for item in rest[:1]} | {stem}
        plain = all(re.match(r"[\w./:=-]+\Z", item.text or "") for item in rest)
        if verbs & _TAKES_CODE and (self.fed or not plain):
            self.deed("executes", name, "code that a program of the project is given")
        for item in rest:  # `./configure CC=x`
            key, sign, value = (item.text or "").partition("=")
            if sign and key.isupper() and (why := environment.trouble(key, [value], self.is_there)):
                self.deed("sets_environment", key, why)


_KNOWN = re.compile(
    rf"(?:.*/)?({lists.pattern('languages', 'known_by_path').pattern})"
    r"(-cli)?(-[\d.]+)?(\.[cm]?js|\.phar|\.py)?"
)
_MAY_BE_OWN = lists.names("languages", "may_be_own")
_WRAPPERS = {"gradlew": "gradle", "mvnw": "mvn"}
_TAKES_CODE = lists.names("languages", "takes_code")
STANDARD_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/")


def _written(command: Command) -> str:
    """The words of a command, `$` for one that is not written out."""
    return " ".join(word.value or "$" for word in command.words)


def _reads_output(command: Command, target: Word) -> bool:
    """`< <(..)` for a loop, or for a program that does nothing with what it reads but print of it."""
    first = target.parts[0] if len(target.parts) == 1 else None
    calm = not command.words or command.words[0].value in READERS_OF_PIPES
    return isinstance(first, Substitution) and first.form == "<(" and calm
