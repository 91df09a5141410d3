"""Little languages on a command line: whether a sed, awk or python text only computes.

Each function takes the text of a program and gives None when it can do no more than read what the command
was given and print, or a short reason why it may do more (run a command, open another file, loop without
end) or is not understood. What is not understood is never called harmless.
"""

from __future__ import annotations

import ast
import re

_SED_PLAIN = "pdDPnNgGhHxFz="
_SED_ADDRESS = re.compile(r"(?:\d+(?:~\d+)?|\$|[+~]\d+)")
_SED_TAIL = re.compile(r"[^;}\n]*")
_STANDARD = ("/dev/stdout", "/dev/stderr", "/dev/stdin")


def sed(text: str) -> str | None:
    """Why a sed script does more than edit the text that it is given."""
    at, end = 0, len(text)
    while at < end:
        if text[at] in " \t\n;{}":
            at += 1
            continue
        if text[at] == "#":
            at = _line_end(text, at)
            continue
        moved = _addresses(text, at)
        if moved is None or moved >= end:
            return "a sed script that is not understood"
        at = moved
        sign = text[at]
        at += 1
        if sign == "{":
            continue
        if sign in "sy":
            done = _substitution(text, at, sign)
            if isinstance(done, str):
                return done
            at = done
        elif sign in "aic":
            at = _line_end(text, at)
        elif sign in "bTt:":
            found = _SED_TAIL.match(text, at)
            assert found is not None
            at = found.end()
        elif sign in "qQlL":
            while at < end and text[at] in " 0123456789":
                at += 1
        elif sign in "rRwW":
            stop = _line_end(text, at)
            if text[at:stop].strip() not in _STANDARD:
                return f"sed's command {sign} opens a file"
            at = stop
        elif sign == "e":
            return "sed's command e runs a command"
        elif sign not in _SED_PLAIN:
            return f"sed's command {sign!a} is not known"
    return None


def _line_end(text: str, at: int) -> int:
    """The end of the line, lines that end in a backslash taken together."""
    while True:
        stop = text.find("\n", at)
        if stop < 0:
            return len(text)
        if text[stop - 1] != "\\":
            return stop
        at = stop + 1


def _addresses(text: str, at: int) -> int | None:
    """Where the addresses before a sed command end; None when one is not understood."""
    while at < len(text):
        sign = text[at]
        if sign in " \t,!":
            at += 1
        elif sign in "/\\":
            delimiter = "/" if sign == "/" else text[at + 1 : at + 2]
            after = _delimited(text, at + (1 if sign == "/" else 2), delimiter)
            if after is None:
                return None
            at = after
            while at < len(text) and text[at] in "IM":
                at += 1
        else:
            found = _SED_ADDRESS.match(text, at)
            if found is None:
                return at
            at = found.end()
    return at


def _delimited(text: str, at: int, delimiter: str) -> int | None:
    if not delimiter or delimiter in "\\\n":
        return None
    inside = False
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 2
            continue
        if sign == delimiter:
            # in a bracket expression some readers end here and some do not: refuse to choose
            return None if inside and "]" in text[at : at + 3] and delimiter != "/" else at + 1
        inside = sign == "[" or (inside and sign != "]")
        at += 1
    return None


def _substitution(text: str, at: int, sign: str) -> int | str:
    delimiter = text[at : at + 1]
    middle = _delimited(text, at + 1, delimiter)
    after = None if middle is None else _delimited(text, middle, delimiter)
    if after is None:
        return "a sed substitution that is not understood"
    if sign == "s":
        while after < len(text) and text[after] in "gpiImM0123456789":
            after += 1
        if after < len(text) and text[after] in "ew":
            return f"sed's flag {text[after]} of s runs a command or writes a file"
    if after < len(text) and text[after] not in " \t;}\n":
        return "a sed substitution that is not understood"
    return after


_AWK_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
_AWK_PATTERN = re.compile(r"/(?:\\.|\[\^?\]?[^\]/\n]*\]|[^/\\\n\[])+/")
_AWK_BAD = (
    (re.compile(r"\bsystem\b|\bsystem\s*\("), "awk's system runs a command"),
    (re.compile(r"(?<!\|)\|(?!\|)"), "awk's | runs a command"),
    (re.compile(r"\bgetline\b"), "awk's getline opens another file or command"),
    (re.compile(r"\bprintf?\b[^;}\n]*>"), "awk's print with > writes a file"),
    (re.compile(r"@"), "awk's @ loads another file or calls by name"),
    (re.compile(r"\bENVIRON\b"), "awk's ENVIRON shows the environment"),
    (re.compile(r"\b(ARGV|ARGC)\b\s*(\[[^\]]*\])?\s*=(?!=)"), "awk's ARGV opens other files"),
    (re.compile(r"\bwhile\s*\(\s*(1|!0)\s*\)|\bfor\s*\(\s*;\s*;"), "an awk loop without end"),
)


def awk(text: str) -> str | None:
    """Why an awk program does more than read its input and print."""
    bare = _awk_bare(text.replace("\\\n", " "))
    if bare is None:
        return "an awk program that is not understood"
    for pattern, reason in _AWK_BAD:
        if pattern.search(bare):
            return reason
    return None


def _awk_bare(text: str) -> str | None:
    """The program without its strings, patterns and comments; None where it can be cut in two ways."""
    at, bare = 0, ""
    while at < len(text):
        sign = text[at]
        if sign == '"':
            found = _AWK_TEXT.match(text, at)
        elif sign == "/" and not re.search(r"[\w)\]\"$]\s*\Z", bare):
            found = _AWK_PATTERN.match(text, at)
        elif sign == "#":
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
            continue
        else:
            bare += sign
            at += 1
            continue
        if found is None:
            return None
        at = found.end()
        bare += '""'
    return bare


_PY_CALLS = frozenset(
    [
        "print",
        "len",
        "sorted",
        "sum",
        "min",
        "max",
        "range",
        "str",
        "int",
        "float",
        "bool",
        "list",
        "dict",
        "set",
        "tuple",
        "repr",
        "abs",
        "round",
        "hex",
        "oct",
        "bin",
        "ord",
        "chr",
        "type",
        "enumerate",
        "zip",
        "any",
        "all",
        "divmod",
        "pow",
        "hash",
        "isinstance",
    ]
)
_PY_METHODS = frozenset(
    [
        "version",
        "python_version",
        "join",
        "split",
        "strip",
        "lower",
        "upper",
        "format",
        "encode",
        "decode",
        "keys",
        "values",
        "items",
        "index",
        "count",
        "startswith",
        "endswith",
        "cpu_count",
        "getcwd",
        "machine",
        "system",
        "platform",
        "hexdigest",
        "exit",
    ]
)
_PY_DUNDER = frozenset({"__version__", "__file__", "__name__", "__doc__"})
_PY_SAFE_FROM = frozenset(
    [
        "sys",
        "json",
        "math",
        "re",
        "platform",
        "os",
        "time",
        "datetime",
        "collections",
        "itertools",
        "functools",
        "string",
        "textwrap",
    ]
)


_PY_REACHES = frozenset(
    {
        "socket",
        "subprocess",
        "ctypes",
        "pty",
        "multiprocessing",
        "http",
        "urllib",
        "ftplib",
        "smtplib",
        "telnetlib",
        "antigravity",
        "idlelib",
        "turtledemo",
    }
)
_PY_SHOWS = ("environ", "environb")
_PY_LARGEST = 1_000_000
_PY_BEYOND = (
    ast.While, ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef,
    ast.Delete,
    ast.Match, ast.Await, ast.Global,
)  # fmt: skip


def _small(node: ast.BinOp) -> bool:
    """True for a power of two plain numbers whose value is short."""
    left, right = node.left, node.right
    return (
        isinstance(left, ast.Constant)
        and isinstance(right, ast.Constant)
        and isinstance(left.value, (int, float))
        and isinstance(right.value, (int, float))
        and left.value <= 1024
        and right.value <= 64
    )


def python(text: str) -> str | None:
    """Why a python program given on the command line does more than import, compute and print."""
    if len(text) > 4000:
        return "a long program given on the command line"
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "python code that does not parse"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func
            plain = isinstance(name, ast.Name) and name.id in _PY_CALLS
            method = isinstance(name, ast.Attribute) and name.attr in _PY_METHODS
            if isinstance(name, ast.Attribute) and name.attr == "system":
                method = isinstance(name.value, ast.Name) and name.value.id == "platform"
            if not (plain or method):
                return "python code that calls more than print and arithmetic"
            if any(
                keyword.arg not in ("sep", "end", "flush", "indent", "start", "reverse")
                for keyword in node.keywords
            ):
                return "python code that hands over what may be called"
            if isinstance(name, ast.Name) and name.id == "type" and len(node.args) != 1:
                return "python code that makes classes"
        elif isinstance(node, ast.Attribute):
            if node.attr.startswith("_") and node.attr not in _PY_DUNDER:
                return "python code that reaches for internals"
            if isinstance(node.ctx, ast.Store):
                return "python code that changes what is not its own"
            if node.attr in _PY_SHOWS:
                return "python code that shows the environment"
        elif isinstance(node, ast.Import):
            if any(alias.name.partition(".")[0] in _PY_REACHES for alias in node.names):
                return "python code that loads what starts processes or connects"
            if any(alias.asname in _PY_CALLS or alias.asname == "platform" for alias in node.names):
                return "python code that gives a module another name"
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "") not in _PY_SAFE_FROM or any(
                alias.asname or alias.name in _PY_CALLS or alias.name in ("*", "system", *_PY_SHOWS)
                for alias in node.names
            ):
                return "python code that imports names which hide what is called"
        elif isinstance(node, _PY_BEYOND):
            return "python code with more than straight statements"
        elif isinstance(node, ast.ExceptHandler) and node.name in {*_PY_CALLS, "platform"}:
            return "python code that gives a function another meaning"
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store) and node.id in {*_PY_CALLS, "platform"}:
                return "python code that gives a function another meaning"
        elif isinstance(node, ast.Subscript):
            if isinstance(node.ctx, ast.Store):
                return "python code that changes what is not its own"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.LShift)) and not _small(node):
            return "python code with a power, whose size is not known"
        elif isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > _PY_LARGEST:
            return "python code with a number that may be a size"
    return None
