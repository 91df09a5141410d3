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
from spak.commandline.parsed import Parsed
from spak.commandline.table import Grammar
from spak.commandline.words import READERS_OF_PIPES, Arg, Known, arg, is_number, joined, spread, words
from spak.commandline.world import Eyes as World
from spak.shell import Command, Substitution, Variable, Word

MAX_WRAPPED = 32
"""Commands that each run the next, as timeout, env and xargs do."""

_BINDERS = frozenset(["read", "export", "local", "unset"])
"""Programs of a shell that set variables, and that the judge permits."""

_SECRET = lists.pattern("findings", "secret_variables", re.IGNORECASE)
_COMPARES = words("= == != =~ < > -eq -ne -lt -le -gt -ge")

_OWN = re.compile(
    r"(_|RANDOM|SECONDS|LINENO|PWD|OLDPWD|REPLY|OPT(ARG|IND|ERR)|DIRSTACK|FUNCNAME|PIPESTATUS|PPID|E?UID|GROUPS|"
    r"SRANDOM|(BASH|COMP|EPOCH|HIST).*)\Z"
)


def sets_itself(name: str) -> bool:
    """True for a variable that a shell changes by itself."""
    return _OWN.match(name) is not None


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
        self.depth = 0
        self.walked = 0
        self.last = False
        """True for the command that ends the whole line."""
        self.been = [""]
        """Every folder that the line has stood in."""
        self.loops = 0
        self.left: Known | None = None
        """What was known where one of the loops around was left or begun again early."""
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
        if args[0].text in ("break", "continue"):
            self.left = joined(self.known if self.left is None else self.left, self.known)
        if args[0].text == "printf" and len(args) > 1 and (args[1].text or "-v").startswith("-v"):
            found = args[1] if args[1].text != "-v" else args[2] if len(args) > 2 else args[0]
            self._unknown(found, (found.text or "").removeprefix("-v"))
        for item in args[1:] if args[0].text in _BINDERS else ():
            for text in item.texts:
                name, sign, _ = text.partition("=")
                if sign or args[0].text != "export":
                    # `-ra name` may be written as one word
                    for start in range(len(name)) if name.startswith("-") else [0]:
                        self._unknown(item, name[start:].rstrip("+"), args[0].text == "read")
            if not item.texts:
                self.known = {}

    def _unknown(self, item: Arg, name: str, judged: bool = True) -> None:
        """A variable that gets a value which is not known."""
        self.known.pop(name, None)
        if not item.texts:
            self.known = {}
        elif judged and environment.matters(name):
            self.deed("sets_environment", name, "programs go by this variable")

    def change_folder(self, name: str, rest: list[Arg]) -> None:
        """`cd`, `pushd` and `popd`. A shell takes `..` from the name that it went by, a program from the
        folder that it is in: where these differ nothing is known."""
        targets = [item for item in rest if item.text not in ("--", "-P", "-L")]
        back = len(targets) == 1 and re.match(r"-\Z|[-+]\d+\Z", targets[0].text or "") is not None
        if (name == "popd" or back) and len(self.been) > 1:  # to one of those before
            self.deed("computes", name)
            self._enter(list(self.been))
            return
        if len(targets) != 1 or targets[0].text is None or targets[0].glob or back or name == "popd":
            self.deed("unknown_word", name, "a folder that is not written out")
            return
        self.deed("computes", name)
        goal = targets[0].text
        stays = [
            f"{old}/{goal}" for old in self.folders if self.world.look(f"./{old}/{goal}").place == "inside"
        ]
        if not (
            self.last and stays and set(goal.rstrip("/").split("/")) == {".."}
        ):  # back, and nothing is done there
            self.path("reads", targets[0])
        moved = []
        for old in self.folders:
            whole = goal if goal.startswith("/") or not old else f"{old}/{goal}"
            named = posixpath.normpath(whole) if goal else old
            by_kernel, by_name = self.world.look(whole or "."), self.world.look(named or ".")
            if (
                ".." in whole
                and (by_kernel.place, by_kernel.path) != (by_name.place, by_name.path)
                and "inside" in (by_kernel.place, by_name.place)
            ):
                self.deed("not_understood", goal, "a folder that a link leads to, and above it")
            moved.append("" if named == "." else named)
        self._enter([*self.folders, *moved] if self.loose else moved)

    def _enter(self, folders: list[str]) -> None:
        self.folders = list(dict.fromkeys(folders))
        if len(self.folders) > 8:
            self.deed("not_understood", "cd", "too many changes of the folder")
            self.folders = self.folders[:8]
        self.been = list(dict.fromkeys([*self.been, *self.folders]))[:8]
        self.known = {name: found for name, found in self.known.items() if not found.here}

    def shadows(self, path: str) -> bool:
        """Whether a python of the line may import what lies at the path, in the place of the library's."""
        parts = posixpath.splitext(path)
        heads = {self.world.look(folder or ".").path for _, folder in self.imports}
        return any(
            posixpath.dirname(path) in ("" if head == "." else head, head)
            and (parts[1] in (".py", ".pyc", ".so", ".zip") or self.world.look(path).kind == "folder")
            for head in heads
        )

    def command(self, command: Command) -> None:
        """Read one command: its assignments, redirections and program."""
        for assignment in command.assignments:
            if assignment.name == "IFS" and command.words and command.words[0].value == "read":
                continue  # for this one reading of a line
            head = bool(command.path) and command.path[-1][0] == "for"
            whole = [arg(word, self.known, head) for word in assignment.values]
            self._odd(whole)
            values = (
                [form for word in assignment.values for form in spread(word, self.known)] if head else whole
            )
            if not assignment.name:
                self._odd(values)
                continue
            self.assign(assignment.name, values, bool(command.words), assignment.append)
        self.stdin = self.body = None
        self.fed = command.operator in ("|", "|&")
        self._secrets(command)
        for redirection in command.redirections:
            if redirection.op.startswith("<") and redirection.fd in ("", "0"):  # the last one counts
                self.fed = True
                self.stdin = arg(redirection.target, self.known) if redirection.op == "<" else None
                self.body = arg(redirection.body, self.known).text if redirection.body is not None else None
            self._odd([arg(word, self.known) for word in (redirection.target, redirection.body) if word])
            if redirection.op == "<" and _reads_output(command, redirection.target):
                continue  # what a command, itself judged, prints
            self._redirect(redirection.op, redirection.fd, redirection.target, redirection.body)
        args = [item for word in command.words for item in spread(word, self.known)]
        self._odd(args)
        if not args:
            if not command.assignments and any(r.op in (">", ">|", "&>") for r in command.redirections):
                self.deed("writes", "redirection", "an empty file")
            else:
                self.deed("computes", "assignment")
            return
        if command.operator in ("|", "|&") and args[0].text in ("sh", "bash", "zsh", "dash", "ksh", "fish"):
            self.deed("executes", args[0].text or "", "a shell that runs what it is sent")
            return
        self.run(args)
        if args[0].text in _KEEPING:  # shells differ about what stays set after these
            for assignment in command.assignments:
                self.known.pop(assignment.name, None)

    def _secrets(self, command: Command) -> None:
        """Notes variables that are called as secrets are, unless the line gave them their value or only asks
        whether they have one."""
        texts = [word.value for word in command.words]
        if texts[:1] in (["["], ["[["], ["test"]) and not _COMPARES & set(texts):
            return
        todo = [part for word in command.all_words() for part in word.parts]
        while todo:
            part = todo.pop()
            todo += getattr(part, "parts", ())
            if not isinstance(part, Variable) or part.name in self.known or not _SECRET.match(part.name):
                continue
            if not re.match(r"\$\{(#|\w+:?\+)", part.text):
                self.deed("shows_environment", part.text, "a variable whose name is that of a secret")

    def _odd(self, args: list[Arg]) -> None:
        if any(item.odd for item in args):
            self.deed("not_understood", "expansion", "it can run commands, or make very many words")

    def assign(self, name: str, values: list[Arg], for_one: bool, append: bool) -> None:
        """Note an assignment, and why it could change what a later command does."""
        why = environment.trouble(name, [text for value in values for text in value.texts])
        if why is None and not all(value.texts or value.mild or not for_one for value in values):
            why = "a value that is not known before the line runs"
        if why is not None and not (for_one is False and not environment.matters(name)):
            self.deed("sets_environment", name, why)
        texts = tuple(text for value in values for text in value.texts)
        if for_one or environment.is_path_list(name):
            self.paths_of(name, texts)
        if for_one:
            return
        if sets_itself(name):
            return
        certain = bool(values) and all(value.texts for value in values) and not append
        self.known[name] = Arg(
            "$" + name,
            texts if certain else (),
            any(value.glob for value in values),
            any(value.tilde for value in values),
            bool(values) and all(value.lists_paths for value in values),
            all(value.mild or value.texts for value in values),
            literal=False,
            number=bool(values) and not append and all(is_number(value) for value in values),
            here=any(value.here for value in values),
            feed=tuple(command for value in values for command in value.feed),
        )
        if any(
            not value.texts and not value.number and ".." in value.written and "{" in value.written
            for value in values
        ):
            self.deed("wastes", name, "a range that is long or not understood")

    def paths_of(self, name: str, values: Sequence[str]) -> None:
        """The paths in the values of a variable that programs get: who knows which of them are run."""
        listed = environment.is_path_list(name)
        parts = ":".join(values).split(":") if listed else environment.paths(values)
        for part in filter(None, parts):
            if part != f"${name}":
                self.path("runs", Arg(part, (part,), tilde=part.startswith("~")))

    def _redirect(self, op: str, fd: str, target: object, body: object) -> None:
        assert isinstance(target, Word)
        if op in ("<<", "<<-", "<<<"):
            return
        found = arg(target, self.known)
        if op in (">&", "<&") and found.text is not None and re.match(r"\d?-?\Z", found.text):
            return
        if fd.startswith("{"):
            self.deed("not_understood", fd, "a redirection into a variable")
        if any(not hasattr(part, "value") and hasattr(part, "line") for part in target.parts):
            self.deed("not_understood", target.text, "a redirection into another command")
            return
        how = "reads" if op in ("<", "<&") else "writes"
        if found.text is not None and re.match(r"/dev/(tcp|udp)/", found.text):
            self.deed("connects", found.text, "a network connection of the shell")
            return
        if found.glob:
            self.deed("unknown_word", found.written, "a pattern as the target of a redirection")
            return
        self.path("redirects" if how == "writes" else how, found)

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
        head = args[0]
        name = head.text
        if name is None or not head.literal or head.glob or head.tilde:
            self.deed("unknown_word", head.written, "the name of the program is not written out")
            return
        if re.match(r"[A-Za-z_]\w*\+?=", name):  # `time` is a word of the shell, after which it assigns
            self.deed("not_understood", name, "an assignment where a program should be")
            return
        rest = list(args[1:])
        if "/" in name:
            folder, _, last = name.rpartition("/")
            if folder + "/" in STANDARD_FOLDERS:
                name = last
            else:
                self._own_program(name, last, rest)
                return
        if name in ("cd", "pushd", "popd"):
            self.change_folder(name, rest)
            return
        listed = self.programs.grammar(name)
        if listed is not None:
            if listed.name == "git":
                self.own_repository(".")
            self.programs.interpret(self, listed, rest)
            return
        if self.only_asks(rest):
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
            return
        if places.is_data(name):
            self.deed("executes", name, "a file of text or data is run as a program")
            return
        self.deed("builds", name, "the project's own program")
        self.takes_code(name, rest)
        self.plain_paths(rest)

    def takes_code(self, name: str, rest: Sequence[Arg]) -> None:
        """Notes code that a program of the project is given: in a word, or as its input."""
        verbs = {item.text for item in rest[:1]}
        if verbs & _TAKES_CODE and (self.fed or any(re.search(r"[(;\n]", item.text or "") for item in rest)):
            self.deed("executes", name, "code that a program of the project is given")


_TAKES_CODE = lists.names("languages", "takes_code")
STANDARD_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/")
_KEEPING = words(": . break continue exit export readonly return set shift times trap unset")


def _reads_output(command: Command, target: Word) -> bool:
    """`< <(..)` for a loop, or for a program that does nothing with what it reads but print of it."""
    first = target.parts[0] if len(target.parts) == 1 else None
    calm = not command.words or command.words[0].value in READERS_OF_PIPES
    return isinstance(first, Substitution) and first.form == "<(" and calm
