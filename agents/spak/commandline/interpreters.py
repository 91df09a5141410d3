"""Programs that run a text: shells, python, node, sed, awk, jq. Files of the project are run, code is not."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from spak.commandline import binaries, programs, scripts
from spak.commandline.binaries import Binary, rule_of
from spak.commandline.commands import Judge
from spak.commandline.words import Arg, texts_of
from spak.shell import Command

_DATA = re.compile(
    r".*\.(md|rst|txt|log|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg|xml|html?|css|png|jpe?g|gif|svg|pdf|patch|diff|lock)\Z",
    re.IGNORECASE,
)


def _run_file(judge: Judge, name: str, found: Arg) -> None:
    """The project's own program; a text or data file is none, whatever stands in it."""
    judge.path("runs", found)
    if any(_DATA.match(text) for text in found.texts):
        judge.deed("executes", f"{name} {found.written}", "a file of text or data is run as a program")
    else:
        judge.deed("builds", name)


def shell(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """`bash FILE` runs the project's own script; `bash -n FILE` only reads it; all else is code."""
    texts = texts_of(rest)
    while texts and re.match(r"-[eux]+\Z|-n\Z", texts[0]):
        texts, rest = texts[1:], rest[1:]
    if judge.only_asks(rest):
        judge.deed("computes", name)
    elif texts and not texts[0].startswith(("-", "+")) and rest[0].literal and not rest[0].tilde and texts[0]:
        _run_file(judge, name, rest[0])
        judge.plain_paths(rest[1:])
    else:
        judge.deed("executes", name, "code for a shell")


def source(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """`source .venv/bin/activate` chooses the project's own programs; any other text is code."""
    text = rest[0].text if len(rest) == 1 else None
    if text and rest[0].literal and re.search(r"(?:^|/)\.?v?env[\w.-]*/bin/activate\Z", text):
        judge.path("runs", rest[0])
        judge.deed("builds", name)
    else:
        judge.deed("executes", name, f"{name} is not for the command line")


_MODULES = frozenset(
    [
        "pytest",
        "unittest",
        "compileall",
        "py_compile",
        "json.tool",
        "doctest",
        "mypy",
        "ruff",
        "black",
        "isort",
        "flake8",
        "pylint",
        "coverage",
        "build",
        "tabnanny",
        "tokenize",
        "ast",
        "dis",
        "platform",
        "sysconfig",
        "this",
        "site",
        "calendar",
        "pip",
        "venv",
        "cProfile",
        "trace",
        "pyflakes",
        "pycodestyle",
        "bandit",
        "sphinx",
        "mkdocs",
        "tox",
        "nox",
        "pre_commit",
        "zipfile",
        "tarfile",
    ]
)


def python(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    at = 0
    while at < len(rest):
        text = rest[at].text
        if text is None or not text.startswith("-") or text == "-":
            break
        if text in ("--version", "-V", "-VV", "--help", "-h"):
            judge.deed("computes", name)
            return
        if text in ("-W", "-X"):
            at += 2
        elif re.match(r"-[WX].+", text) or re.match(r"-[uBEIOqsSvbd]+\Z", text):
            at += 1
        elif text == "-c":
            code = rest[at + 1].text if at + 1 < len(rest) else None
            why = "code that is not known" if code is None else scripts.python(code)
            judge.deed("executes" if why else "builds", f"{name} -c", why or "")
            return
        elif text == "-m":
            _module(judge, name, rest[at + 1 :], before)
            return
        else:
            judge.deed("executes", f"{name} {text}", "an option of the interpreter that is not known")
            return
    if at >= len(rest) or rest[at].text in ("-", None):
        judge.deed("executes", name, "code from standard input, or a file that is not written out")
        return
    _run_file(judge, name, rest[at])
    judge.plain_paths(rest[at + 1 :])


def _module(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    module = rest[0].text if rest else None
    if module is None or not re.match(r"[A-Za-z_][\w.]*\Z", module):
        judge.deed("executes", f"{name} -m", "a module that is not written out")
        return
    rest = rest[1:]
    if judge.only_asks(rest):
        judge.deed("computes", f"{name} -m {module}")
        return
    top = module.partition(".")[0]
    if module in (
        "pytest",
        "mypy",
        "ruff",
        "black",
        "isort",
        "flake8",
        "pylint",
        "coverage",
        "pip",
        "tox",
        "nox",
        "bandit",
    ):
        judge.run([Arg(module, (module,)), *rest], before)
        return
    if module in ("cProfile", "trace"):
        inner = list(rest)
        while inner and (inner[0].text or "-").startswith("-"):
            if re.match(r"-o|--file|-C|--outfile", inner[0].text or "-"):
                judge.plain_paths(inner[:2], "writes")
            if inner[0].text == "-m":
                _module(judge, name, inner[1:], before)
                return
            inner = inner[2:] if inner[0].text in ("-s", "-o", "--sort", "-C", "-f") else inner[1:]
        python(judge, name, inner, before)
        return
    if module == "timeit":
        texts = [text for text in texts_of(rest) if not re.match(r"-(n|r|u|s)\Z|\d+\Z|-[nr]\d+\Z", text)]
        why = next(filter(None, (scripts.python(text) for text in texts)), "" if texts else "no code")
        judge.deed("executes" if why else "builds", "python -m timeit", why)
        return
    if module in ("zipfile", "tarfile") and not any(
        text in ("-l", "--list", "-t", "--test") for text in texts_of(rest)
    ):
        judge.deed("refused_flag", f"python -m {module}", "it writes what an archive names")
        return
    if top in sys.stdlib_module_names and module not in _MODULES:
        judge.deed("executes", f"python -m {module}", "a module that runs code, listens or connects")
        return
    judge.deed("builds", f"python -m {module}")
    judge.plain_paths(rest, "writes" if module == "venv" else "reads")


_JS = re.compile(
    r"(?:console\.log\()?(?:require\('\./(?!\.)[\w-]+\.json'\)(?:\.[a-z]+)*|process\.versions?(?:\.\w+)?|"
    r"[\d\s+*/%.-]+|'[^'\\]*'|\"[^\"\\]*\")\)?;?\Z"
)
"""JavaScript that prints: a number, a text, a value of a JSON file beside, a version."""


def node(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    texts = texts_of(rest)
    if judge.only_asks(rest) or texts == ["-v"]:
        judge.deed("computes", name)
        return
    while texts and texts[0] in (
        "--check",
        "-c",
        "--test",
        "--trace-warnings",
        "--enable-source-maps",
        "--no-warnings",
    ):
        if texts[0] == "--test" and len(texts) == 1:
            judge.deed("builds", name)
            return
        texts, rest = texts[1:], rest[1:]
    if texts[:1] in (["-e"], ["-p"], ["--eval"], ["--print"]) and len(texts) == 2 and _JS.match(texts[1]):
        judge.deed("computes", name)
        return
    if not texts or not texts[0] or texts[0].startswith("-"):
        judge.deed("executes", name, "code on the command line, or an option that loads code")
        return
    _run_file(judge, name, rest[0])
    judge.plain_paths(rest[1:])


def script_only(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """perl, ruby and their like: only the project's own file."""
    if judge.only_asks(rest) or texts_of(rest) in (["-v"], ["-V"]):
        judge.deed("computes", name)
    elif programs.checker(judge, name, rest, before) or (name == "perl" and programs.perl_line(judge, rest)):
        return
    elif name == "perl" and texts_of(rest)[:1] == ["-c"] and len(rest) == 2:
        judge.deed("executes", name, "perl runs BEGIN blocks even when it only checks")
    elif rest and rest[0].text and not rest[0].text.startswith("-"):
        _run_file(judge, name, rest[0])
        judge.plain_paths(rest[1:])
    else:
        judge.deed("executes", name, "code on the command line")


def sed(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    if judge.only_asks(rest):
        judge.deed("computes", name)
        return
    rule = Binary(
        ("text", "read"),
        {
            "e": "text*",
            "expression": "text*",
            "f": "read*",
            "file": "read*",
            "l": "number",
            "line-length": "number",
        },
        {},
    )
    inplace = False
    clean: list[Arg] = []
    for item in rest:
        text = item.text or ""
        if re.match(r"-[nErsuz]*i|--i", text) and "e" not in text.partition("i")[0]:
            inplace = True
            head = text.partition("i")[0] if not text.startswith("--") else "-"
            suffix = text.partition("i")[2] if not text.startswith("--") else text.partition("=")[2]
            if "/" in suffix or ".." in suffix:
                judge.deed("refused_flag", f"sed {text}", "a backup elsewhere")
            if len(head) > 1:
                clean.append(Arg(head, (head,)))
            continue
        clean.append(item)
    options, operands = judge.options(name, rule, clean)
    programs = [*options.get("e", []), *options.get("expression", [])]
    if options.get("f") or options.get("file"):
        judge.deed("not_understood", "sed -f", "a script from a file is not read here")
    elif not programs and operands:
        programs, operands = operands[:1], operands[1:]
    if not programs:
        judge.deed("not_understood", name, "no script")
    known = [program.text for program in programs]
    if any(text is None for text in known):
        if all(text is not None or program.mild for text, program in zip(known, programs, strict=True)):
            judge.deed("not_understood", name, "a script that is not known before the line runs")
        else:
            judge.deed("unknown_word", name, "a script that is not known before the line runs")
    else:
        why = scripts.sed("\n".join(text for text in known if text is not None))
        judge.deed("executes" if why else ("writes" if inplace else "reads"), name, why or "")
    for operand in operands:
        judge.path("writes" if inplace else "reads", operand)


def awk(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    if judge.only_asks(rest):
        judge.deed("computes", name)
        return
    rule = rule_of(
        "F=text v=text field-separator=text assign=text",
        "f file i include l load E exec e source D debug o pretty-print d dump-variables p profile",
    )
    _options, operands = judge.options(name, rule, rest)
    if not operands or operands[0].text is None:
        judge.deed("not_understood", name, "a program that is not known before the line runs")
        return
    why = scripts.awk(operands[0].text)
    judge.deed("executes" if why else "reads", name, why or "")
    for operand in operands[1:]:
        if operand.text is not None and re.match(r"[A-Za-z_]\w*=", operand.text):
            continue
        judge.path("reads", operand)


def jq(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    if any(
        re.search(
            r"(?<![.\w\"])(env|import|include|input_filename|getpath_|load\w*|strenv|envsubst|eval|system)\b|\$ENV",
            text,
        )
        for text in texts_of(rest)
    ):
        judge.deed("shows_environment", name, "it may print the environment or load other files")
        return
    judge.by_table(name, binaries.table()[name], rest)
