"""What a command line would do: every simple command in it, by the table of its program.

Takes the text of a line and the Eyes on a workspace; gives a Reading: the deeds of its commands (a kind,
what it is about, why) and the paths that it would use. It decides nothing: which kinds of deed and which
places are permitted is the policy's (specs/policy/shell.mg). What is not understood is a
deed of its own kind.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence

from spak.commandline import environment, table, walkers
from spak.commandline.findings import Reading, compiled_and_run
from spak.commandline.flow import Flow, sets_itself
from spak.commandline.interpret import interpret
from spak.commandline.kinds import is_data
from spak.commandline.words import READERS_OF_PIPES, Arg, Known, arg, is_number, spread, words
from spak.commandline.world import Eyes as World
from spak.errors import UserError
from spak.shell import Command, Substitution, Word, parse

HERE = Arg(".", (".",))
MAX_WRAPPED = 32
"""Commands that each run the next, as timeout, env and xargs do."""


def read_line(text: str, world: World, folder: str = "", env: Mapping[str, str] | None = None) -> Reading:
    """The deeds and paths of all commands of a line that is run in a folder, with variables of the
    environment besides the usual ones."""
    reading = Reading()
    try:
        line = parse(text)
    except UserError as error:
        reading.trouble = (error.code, error.message)
        return reading
    if not line.commands:
        reading.trouble = ("shell.empty", "no command")
        return reading
    judge = Judge(world, reading)
    judge.starts(folder, env or {})
    judge.line(line)
    if line.background or any(command.operator == "&" for command in line.every()):
        judge.deed("background", "&", "a command that goes on after the line")
    judge.through_links()
    run = {use.path for use in reading.uses if use.how == "runs"}
    compiled = compiled_and_run(reading, run)
    for index in compiled:  # who runs the program runs its source
        run |= {use.path for use in reading.uses if use.index == index and use.how == "reads"}
    for use in list(reading.uses):
        if use.index in compiled and use.how == "writes":
            continue
        changes = use.how in ("writes", "redirects", "writes_mode", "moves")
        if changes and (_is_run(use.path, run) or judge.shadows(use.path)):
            judge.deed("runs_what_it_writes", use.path, "a file that the same line writes is run")
    return reading


class Judge(Flow):
    """One pass over the commands of a line; knows the variables and the folder that the line has set."""

    def __init__(self, world: World, reading: Reading) -> None:
        super().__init__(world, reading)
        self.known: Known = {}
        self.wrapped = 0
        self.stdin: Arg | None = None
        """The file that the command reads as its input, where the line names one."""
        self.body: str | None = None
        """The text that the command gets as its input, where the line holds it."""
        self.depth = 0

    def shadows(self, path: str) -> bool:
        """Whether a python of the line may import what lies at the path, in the place of the library's."""
        parts = posixpath.splitext(path)
        heads = {self.world.look(folder or ".").path for _, folder in self.imports}
        return any(
            posixpath.dirname(path) in ("" if head == "." else head, head)
            and (parts[1] in (".py", ".pyc", ".so", ".zip") or self.world.look(path).kind == "folder")
            for head in heads
        )

    def command(self, command: Command, before: Sequence[Command], loose: bool) -> None:
        """Read one command: its assignments, redirections and program, after those before it on the line."""
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
        for redirection in command.redirections:
            if redirection.op.startswith("<") and redirection.fd in ("", "0"):  # the last one counts
                held = redirection.body is not None
                self.stdin = None if held or redirection.op != "<" else arg(redirection.target, self.known)
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
        self.run(args, before, loose)
        if args[0].text in _KEEPING:  # shells differ about what stays set after these
            for assignment in command.assignments:
                self.known.pop(assignment.name, None)

    def listed(self, feed: Sequence[Command]) -> None:
        """What `find` or `ls` lists is read: secrets in it, and links out of the workspace."""
        args = [arg(word, self.known) for word in feed[0].words] if feed else []
        if args and args[0].text == "find":
            at = next((at for at, item in enumerate(args) if (item.text or "-")[0] in "-(!"), len(args))
            walkers.found(self, args, args[1:at])
        elif args and args[0].text == "ls":
            for item in [item for item in args[1:] if not (item.text or "-").startswith("-")] or [HERE]:
                self.tree(item, True, self._beside(item))
        elif args and args[0].text in ("fd", "fdfind"):
            paths = [item for item in args[1:] if not (item.text or "-").startswith("-")][1:]
            for item in paths or [HERE]:
                self.tree(item, False)

    def _beside(self, item: Arg) -> Callable[[str], bool]:
        """Says of a path whether it lies in the folder itself and not further down."""
        folders = {
            self.world.look(posixpath.join(base, text)).path for base in self.folders for text in item.texts
        }
        return lambda path: (posixpath.dirname(path) or ".") in folders

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
        if environment.is_path_list(name):
            for value in values:
                for text in value.texts:
                    for item in text.split(":"):
                        if item and item not in (f"${name}",):
                            self.path("runs", Arg(item, (item,), tilde=item.startswith("~")))
        if for_one:
            return
        if sets_itself(name):
            return
        texts = tuple(text for value in values for text in value.texts)
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

    def run(self, args: Sequence[Arg], before: Sequence[Command] = (), loose: bool = False) -> None:
        """One command: its name is known or nothing of it is permitted."""
        self.wrapped += 1
        if self.wrapped > MAX_WRAPPED:
            self.deed("not_understood", args[0].written, "commands that run commands, nested too deeply")
        else:
            self._run(args, before, loose)
            self.bound(args)
        self.wrapped -= 1

    def _run(self, args: Sequence[Arg], before: Sequence[Command], loose: bool) -> None:
        head = args[0]
        name = head.text
        if name is None or not head.literal or head.glob or head.tilde:
            self.deed("unknown_word", head.written, "the name of the program is not written out")
            return
        rest = list(args[1:])
        if "/" in name:
            folder, _, last = name.rpartition("/")
            if folder + "/" in STANDARD_FOLDERS:
                name = last
            else:
                self._own_program(name, last, rest, before)
                return
        if name in ("cd", "pushd", "popd"):
            self.change_folder(name, rest, loose)
            return
        listed = table.grammar(name)
        if listed is not None:
            if listed.name == "git":
                self.own_repository((".",))
            interpret(self, listed, rest, before)
            return
        if self.only_asks(rest):
            self.deed("computes", name, "a version or a help text")
        else:
            self.deed("unknown_binary", name, "nothing is known about this program")

    def _own_program(self, name: str, last: str, rest: list[Arg], before: Sequence[Command]) -> None:
        """A program by its path: the workspace's own, or a known one from an environment in it."""
        self.use("runs", name)
        if re.search(r"(^|/)(\.?venv|env|\.tox/[^/]+|node_modules/\.bin|vendor/bin)(/bin)?/[^/]+\Z", name):
            self.run([Arg(last, (last,)), *rest], before)
            return
        if is_data(name):
            self.deed("executes", name, "a file of text or data is run as a program")
            return
        self.deed("builds", name, "the project's own program")
        self.plain_paths(rest)


def _is_run(path: str, run: set[str]) -> bool:
    """Whether the path is run itself, or as part of a folder that is."""
    return path in run or any(folder == "." or path.startswith(folder + "/") for folder in run)


STANDARD_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/")
_KEEPING = words(": . break continue exit export readonly return set shift times trap unset")


def _reads_output(command: Command, target: Word) -> bool:
    """`< <(..)` for a loop, or for a program that does nothing with what it reads but print of it."""
    first = target.parts[0] if len(target.parts) == 1 else None
    calm = not command.words or command.words[0].value in READERS_OF_PIPES
    return isinstance(first, Substitution) and first.form == "<(" and calm
