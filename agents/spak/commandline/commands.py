"""What a command line would do: every simple command in it, by binary and flag.

Takes the text of a line and the World; gives a Reading: the deeds of its commands (a kind, what it is about,
why) and the paths that it would use. It decides nothing: which kinds of deed and which places are permitted
stands in specs/policy/shell.mg and files.mg. What is not understood is a deed of its own kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from spak.commandline import binaries, environment, table
from spak.commandline.binaries import STANDARD_FOLDERS, Binary
from spak.commandline.findings import SAFE_DEVICES, Deed, Reading, Use, compiled_and_run
from spak.commandline.flow import Flow, sets_itself
from spak.commandline.interpret import interpret
from spak.commandline.outputs import lists_paths
from spak.commandline.refused import HARD_REFUSED
from spak.commandline.words import READERS_OF_PIPES, Arg, Known, arg, is_number, spread
from spak.commandline.world import Eyes as World
from spak.errors import UserError
from spak.shell import Command, Substitution, Word, parse

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
        judge.deed("background", "&", "a command that goes on behind the line")
    judge.through_links()
    run = {use.path for use in reading.uses if use.how == "runs"}
    compiled = compiled_and_run(reading, run)
    for index in compiled:  # who runs the program runs its source
        run |= {use.path for use in reading.uses if use.index == index and use.how == "reads"}
    for use in list(reading.uses):
        if use.index in compiled and use.how == "writes":
            continue
        if use.how in ("writes", "redirects", "writes_mode", "moves") and use.path in run:
            judge.deed("runs_what_it_writes", use.path, "a file that the same line writes is run")
    return reading


class Judge(Flow):
    """One pass over the commands of a line; knows the variables and the folder that the line has set."""

    def __init__(self, world: World, reading: Reading) -> None:
        super().__init__(world, reading)
        self.known: Known = {}
        self.wrapped = 0
        self.depth = 0

    def command(self, command: Command, before: Sequence[Command], loose: bool) -> None:
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
        for redirection in command.redirections:
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
        if args[0].text in _KEEPING:  # shells differ about what stays set behind these
            for assignment in command.assignments:
                self.known.pop(assignment.name, None)

    def _odd(self, args: list[Arg]) -> None:
        if any(item.odd for item in args):
            self.deed("not_understood", "expansion", "it can run commands, or make very many words")

    def assign(self, name: str, values: list[Arg], for_one: bool, append: bool) -> None:
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
                            self.path("reads", Arg(item, (item,), tilde=item.startswith("~")))
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
        from spak.commandline import special

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
            interpret(self, listed, rest, before)
            return
        if name in special.JUDGES:
            special.JUDGES[name](self, name, rest, before)
            return
        reason = HARD_REFUSED.get(name)
        if reason is not None:
            if self.only_asks(rest) and reason in ("executes", "connects"):
                self.deed("computes", name)
            else:
                self.deed(reason, name, f"{name} is not for the command line")
            return
        rule = binaries.table().get(name)
        if rule is None and self.only_asks(rest):
            self.deed("computes", name, "a version or a help text")
        elif rule is None:
            self.deed("unknown_binary", name, "nothing is known about this program")
        else:
            self.by_table(name, rule, rest)

    def _own_program(self, name: str, last: str, rest: list[Arg], before: Sequence[Command]) -> None:
        """A program by its path: the workspace's own, or a known one from an environment in it."""
        self.use("runs", name)
        if re.search(r"(^|/)(\.?venv|env|\.tox/[^/]+|node_modules/\.bin|vendor/bin)(/bin)?/[^/]+\Z", name):
            self.run([Arg(last, (last,)), *rest], before)
            return
        self.deed("builds", name, "the project's own program")
        self.plain_paths(rest)

    # ---- the table

    def by_table(self, name: str, rule: Binary, rest: list[Arg]) -> None:
        if self.only_asks(rest):
            self.deed("computes", name)
            return
        if name in READERS_OF_PIPES:
            rest = [Arg("/dev/stdin", ("/dev/stdin",)) if item.piped else item for item in rest]
        first = rule.operands[0] if rule.operands else "none"
        if first == "refused":
            self.deed("executes", name, f"{name} can run other programs")
            return
        if first.startswith("first:"):
            self._verb(name, rule, rest, first)
            return
        options, operands = self.options(name, rule, rest)
        kinds = list(rule.operands)
        if (
            kinds
            and kinds[0] == "text"
            and (
                (
                    any(key in ("e", "regexp", "f", "file", "from-file") for key in options)
                    and rule.takes.get("e") == "text*"
                )
                or ("f" in options and rule.takes.get("f") == "read*")
                or ("files" in options and rule.takes.get("files") == "flag@first")
            )
        ):
            kinds = kinds[1:]
        self.deed(rule.does, name)
        self.operands(name, kinds, operands, options)

    def operands(
        self, name: str, kinds: list[str], operands: list[Arg], options: dict[str, list[Arg]]
    ) -> None:
        kinds = kinds or ["read"]
        last = kinds[-1]
        many = kinds[0].endswith("*") and len(kinds) > 1
        target_given = bool(options.get("t") or options.get("target-directory")) and name in (
            "cp",
            "mv",
            "install",
        )
        for position, item in enumerate(operands):
            if many:
                kind = last if position == len(operands) - 1 and not target_given else kinds[0].rstrip("*")
            else:
                kind = kinds[min(position, len(kinds) - 1)]
            self.operand(name, kind, item, options)

    def operand(self, name: str, kind: str, item: Arg, options: dict[str, list[Arg]]) -> None:
        if kind == "number" and item.text is not None and not re.match(r"[-+]?\d[\w.,]*\Z|auto\Z", item.text):
            self.path("reads", item)
        elif kind == "size":
            if item.text is None or not re.match(r"\d{1,7}\Z|\d{1,4}[Kk]\Z", item.text):
                self.deed("wastes", f"{name} {item.written}", "a size that is large or not plain")
        elif kind == "settings":
            if item.text is None or "{" in item.text:
                self.deed("refused_flag", f"{name} {item.written}", "settings on the command line load code")
            else:
                self.path("reads", item)
        elif kind == "plugin":
            calm = item.text is not None and re.match(
                r"no:\w+\Z|(xdist|pytest_cov|pytest_\w+|cov)\Z", item.text
            )
            if not calm:
                self.deed("refused_flag", f"{name} -p", "it loads a module as a plug-in")
        elif kind == "names":
            if item.text is None or not re.match(r"[A-Za-z_]\w*\Z", item.text):
                self.deed("not_understood", item.written, "not the name of a variable")
        elif kind in ("text", "none_text", "number", "code_text"):
            if not item.texts and name in PRINTERS and _SECRET_NAME.search(item.written):
                self.deed("shows_environment", item.written, "a variable whose name is that of a secret")
            if not item.texts and not item.mild and name not in PRINTERS:
                self.deed("unknown_word", item.written, "a word that is not known before the line runs")
        elif kind in ("read", "write") and any(_ADDRESS.match(text) for text in item.texts):
            self.deed("connects", item.written, "an address on a command line")
        elif kind == "read":
            self.path("reads", item)
        elif kind == "write":
            if name == "mv" and item.text in SAFE_DEVICES:
                self.deed("destroys", f"mv {item.text}", "what is moved there is gone")
            self.path("writes", item)
        elif kind == "generated":
            self.path("deletes_tree", item)
        elif kind == "delete":
            self.path("deletes_tree" if name == "rm" and _recursive(options) else "deletes", item)
            if item.glob and name == "rm":
                for text in item.texts:
                    self.destructive_glob("deletes", text)
        elif kind == "delete_source":
            self.path("moves", item)
            if item.glob:
                for text in item.texts:
                    self.use("moves", text)
        elif kind == "code":
            self.path("runs", item)
        elif kind == "tests":
            self.path(
                "reads",
                Arg(
                    item.written,
                    tuple(text.partition("::")[0] or "." for text in item.texts),
                    item.glob,
                    item.tilde,
                    item.lists_paths,
                ),
            )
        elif kind == "none":
            self.deed("unknown_flag", f"{name} {item.written}", "no word is expected here")

    def options(self, name: str, rule: Binary, rest: list[Arg]) -> tuple[dict[str, list[Arg]], list[Arg]]:
        """The options with their values, and the operands. What is refused becomes a deed."""
        found: dict[str, list[Arg]] = {}
        operands: list[Arg] = []
        at = 0
        while at < len(rest):
            item = rest[at]
            at += 1
            text = item.text
            if text == "--":
                operands += rest[at:]
                break
            dashed = any(form.startswith("-") and len(form) > 1 for form in item.texts)
            if not dashed:
                operands.append(item)
                continue
            if text is None or (item.glob and not item.literal):
                self.deed("unknown_word", item.written, "a word that may be an option")
                continue
            if name in _SINGLE_DASH and not text.startswith("--") and len(text) > 2:
                at += self._long(name, rule, text[1:], rest[at : at + 2], found, item, exact=True)
            elif text.startswith("--"):
                at += self._long(name, rule, text[2:], rest[at : at + 2], found, item)
            else:
                at += self._cluster(name, rule, text[1:], rest[at : at + 2], found, item)
        return found, operands

    def _long(
        self,
        name: str,
        rule: Binary,
        text: str,
        after: list[Arg],
        found: dict[str, list[Arg]],
        item: Arg,
        exact: bool = False,
    ) -> int:
        key, sign, value = text.partition("=")
        for option, reason in rule.refused.items():
            if option == key or (
                len(option) > 1 and not exact and option.startswith(key) and key not in rule.takes
            ):
                self.deed("refused_flag", f"{name} {'-' if exact else '--'}{option}", reason)
                return 0
        kind = rule.takes.get(key)
        if kind is None and exact:
            return self._cluster(name, rule, text, after, found, item)
        if kind is None and not exact:
            names = [option for option in rule.takes if len(option) > 1 and option.startswith(key)]
            kind = rule.takes[names[0]] if names and len(key) > 1 else None
            key = names[0] if kind else key
        if kind is None:
            if value:
                self.pathlike(item, text if exact else "--" + text)
            found.setdefault(key, [])
            return 0
        if kind.startswith("flag") or (kind == "write" and key in ("debug",) and not sign):
            found.setdefault(key, [])
            return 0
        return self._value(
            name,
            key,
            kind,
            [Arg(value, (value,), tilde=value.startswith("~"))] if sign else after,
            found,
            bool(sign),
        )

    def _cluster(
        self, name: str, rule: Binary, text: str, after: list[Arg], found: dict[str, list[Arg]], item: Arg
    ) -> int:
        for position, key in enumerate(text):
            if key in rule.refused:
                self.deed("refused_flag", f"{name} -{key}", rule.refused[key])
                return 0
            kind = rule.takes.get(key)
            if kind is not None and not kind.startswith("flag"):
                value = text[position + 1 :].removeprefix("=")
                return self._value(
                    name,
                    key,
                    kind,
                    [Arg(value, (value,), item.glob, value.startswith("~"))] if value else after,
                    found,
                    bool(value),
                )
            found.setdefault(key, [])
            if key in "/~." and name != "tail":
                self.pathlike(item, text[position:])
                return 0
        return 0

    def _value(
        self, name: str, key: str, kind: str, values: list[Arg], found: dict[str, list[Arg]], attached: bool
    ) -> int:
        if not values:
            return 0
        kind = kind.rstrip("*")
        if kind in ("text2", "textread"):
            found.setdefault(key, []).extend(values[:2])
            if kind == "textread" and len(values) > 1:
                self.path("reads", values[1])
            return min(2, len(values))
        value = values[0]
        found.setdefault(key, []).append(value)
        self.operand(name, kind, value, found)
        return 0 if attached else 1

    # ---- programs with verbs

    def _verb(self, name: str, rule: Binary, rest: list[Arg], first: str) -> None:
        verbs = first.partition(":")[2].split(",")
        if not rest or rest[0].text not in verbs:
            self.deed(
                "unknown_flag", f"{name} {rest[0].written if rest else ''}", "nothing is known about this use"
            )
            return
        _options, operands = self.options(name, rule, rest[1:])
        self.deed("builds", name)
        self.plain_paths(operands)


_KEEPING = frozenset(
    [
        ":",
        ".",
        "break",
        "continue",
        "exit",
        "export",
        "readonly",
        "return",
        "set",
        "shift",
        "times",
        "trap",
        "unset",
    ]
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SECRET_NAME = re.compile(r"\$\{?\w*(KEY|TOKEN|SECRET|PASS|CRED|AUTH|AWS_|DATABASE_URL)", re.IGNORECASE)
PRINTERS = frozenset({"echo", "printf", ":", "true", "test", "[", "basename", "dirname", "exit"})
_SINGLE_DASH = frozenset(
    {"nvcc", "gcc", "g++", "cc", "c++", "clang", "clang++", "go", "javac", "rustc", "unzip", "tree"}
)


def _recursive(options: dict[str, list[Arg]]) -> bool:
    return any(key in options for key in ("r", "R", "recursive", "d"))


Special = Callable[[Judge, str, list[Arg], Sequence[Command]], None]
__all__ = ["Deed", "Judge", "Reading", "Special", "Use", "lists_paths", "read_line"]


def _reads_output(command: Command, target: Word) -> bool:
    """`< <(..)` for a loop, or for a program that does nothing with what it reads but print of it."""
    first = target.parts[0] if len(target.parts) == 1 else None
    calm = not command.words or command.words[0].value in READERS_OF_PIPES
    return isinstance(first, Substitution) and first.form == "<(" and calm
