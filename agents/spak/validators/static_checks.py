"""The named checks behind `AXIOM "..." CHECK name {...}`: functions on the bytes of one artifact.

Each takes arguments, bytes, a file name and a reader of the files next to it (those that a digest cites), and
gives Findings; none means that the axiom holds. An unknown check, a wrong argument and a text that cannot be
parsed are findings too: what could not be checked does not hold. `CHECKS` is the table; a new check is one
function and one entry in it, with the schema by which `spak check` judges the arguments before the run.
"""

from __future__ import annotations

import ast
import json
import os
import re
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spak.lang.catalog import NamedEntry
from spak.lang.schema import violations
from spak.validators import citations

MAX_SOURCE = 1 << 20
"""Python source beyond this is not parsed: `too_large`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a source that is not allowed, and its line."""

    code: str
    message: str
    line: int = 0


Args = Mapping[str, Any]
Files = Callable[[str], bytes | None]
"""The bytes of a file by its path in the folder of the artifact, or in the workspace; None: no such file."""
Check = Callable[[Args, bytes, str, Files], list[Finding]]


def nowhere(name: str) -> None:
    """None: an artifact without files next to it."""


@dataclass(frozen=True, slots=True)
class StaticCheck:
    """A check and what a spec has to know of it: name, summary, schema of its arguments."""

    function: Check
    entry: NamedEntry


def judge(check: str, args: Args, data: bytes, name: str, files: Files = nowhere) -> list[Finding]:
    """The findings of one named check, in order of line. `files` gives the files next to the artifact."""
    known = CHECKS.get(check)
    if known is None:
        return [Finding("unknown_check", f"no check is called {check}; known: {', '.join(sorted(CHECKS))}")]
    wrong = violations(known.entry.schema, dict(args))
    if wrong:
        first = wrong[0]
        place = f" at {first.path}" if first.path else ""
        message = f"{check} wants {first.expected}{place}, not {first.received}"
        return [Finding("bad_argument", message)]
    return sorted(known.function(args, data, name, files), key=lambda finding: finding.line)


def read(
    workspace: Path, name: str, limit: int, hides: Callable[[str], bool] = lambda path: False
) -> bytes | None:
    """The bytes of a regular file in the workspace, or None beyond the limit. No link is followed.

    Raises: OSError when there is no such file, a part of its path is a link or leaves the workspace, or it
    `hides`.
    """
    parts = Path(name).parts
    if hides(name):
        raise OSError(13, "a file of secrets")
    if not parts or Path(name).is_absolute() or ".." in parts:
        raise OSError(22, "the path leaves the workspace")
    folder = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = deeper
        # O_NONBLOCK: a FIFO must not hang the open; it has no meaning for a regular file.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(parts[-1], flags, dir_fd=folder), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(22, "not a regular file")
            data = file.read(limit + 1)
    finally:
        os.close(folder)
    return None if len(data) > limit else data


def folder_files(folder: Path, hides: Callable[[str], bool] = lambda path: False) -> Files:
    """The files in a folder, of up to MAX_SOURCE bytes, but those that it `hides`; no link is followed."""

    def get(name: str) -> bytes | None:
        try:
            return read(folder, name, MAX_SOURCE, hides)
        except (OSError, ValueError):
            return None

    return get


def _contains(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    missing = [text for text in _texts(args, "text") if text.encode() not in data]
    return [Finding("missing_text", f"does not contain {text!r}") for text in missing]


def _not_contains(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    found = []
    for text in _texts(args, "text"):
        at = data.find(text.encode())
        if at >= 0:
            found.append(Finding("forbidden_text", f"contains {text!r}", data.count(b"\n", 0, at) + 1))
    return found


def _max_lines(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    most, lines = args["lines"], len(data.splitlines())
    return [] if lines <= most else [Finding("too_many_lines", f"{lines} lines, at most {most}", most + 1)]


def _max_bytes(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    most = args["bytes"]
    return [] if len(data) <= most else [Finding("too_many_bytes", f"{len(data)} bytes, at most {most}")]


def _json_valid(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    try:
        json.loads(data, parse_constant=_not_json)
    except RecursionError:
        return [Finding("invalid_json", "nested too deep")]
    except json.JSONDecodeError as error:
        return [Finding("invalid_json", error.msg, error.lineno)]
    except ValueError as error:  # bytes that are no text, NaN, an integer beyond the digit limit
        return [Finding("invalid_json", str(error))]
    return []


def _not_json(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _no_import(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    banned = _texts(args, "modules")
    tree = _parse(data)
    if isinstance(tree, Finding):
        return [tree]
    found = []
    for module, line in _imports(tree):
        if module is None:
            found.append(Finding("dynamic_import", "imports a module whose name is not a constant", line))
        elif any(module == ban or module.startswith(f"{ban}.") for ban in banned):
            found.append(Finding("forbidden_import", f"imports {module}", line))
    return found


def _no_call(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    banned = set(_texts(args, "names"))
    tree = _parse(data)
    if isinstance(tree, Finding):
        return [tree]
    aliases = _aliases(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = _dotted(node.func, aliases)
            if called in banned or called.removeprefix("builtins.") in banned:
                found.append(Finding("forbidden_call", f"calls {called}", node.lineno))
    return found


def _exports_symbol(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    wanted = _texts(args, "symbol")
    if name.endswith((".py", ".pyi")):
        tree = _parse(data)
        if isinstance(tree, Finding):
            return [tree]
        names = _top_level(tree)
    else:
        names = set(c_functions(data.decode("utf-8", "replace")))
    return [Finding("missing_symbol", f"does not export {one}") for one in wanted if one not in names]


def _cites(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    """Every claim cites a document that is there; text outside of claims is a claim without a citation."""
    least = args.get("min", 1)
    digest = citations.read(data.decode("utf-8", "replace"))
    found = [Finding("loose_text", "neither a heading nor a claim in a list", line) for line in digest.loose]
    if len(digest.claims) < least:
        found.append(Finding("too_few_claims", f"{len(digest.claims)} claims, at least {least}"))
    documents = _documents(args, files)
    for claim in digest.claims:
        if not claim.citations:
            message = 'a claim without a citation; one is written [PATH: "QUOTE"]'
            found.append(Finding("uncited_claim", message, claim.line))
        for citation in claim.citations:
            if documents(citation.path) is None:
                message = f"there is no document {citation.path!a}"
                found.append(Finding("unknown_document", message, claim.line))
    return found


def _quotes(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    """Every claim has a quote, and every quote occurs in its document, blanks ignored."""
    least = args.get("min_chars", 12)
    digest = citations.read(data.decode("utf-8", "replace"))
    documents, found = _documents(args, files), []
    for claim in digest.claims:
        if not claim.citations:
            found.append(Finding("uncited_claim", "a claim without a quote", claim.line))
        for citation in claim.citations:
            text, quote = documents(citation.path), citation.quote
            if text is None or quote not in text:
                message = f"{citation.path!a} does not say {quote[:80]!a}"
                found.append(Finding("misquoted", message, claim.line))
            elif len(quote) < least:
                message = f"a quote of {len(quote)} characters, at least {least}"
                found.append(Finding("short_quote", message, claim.line))
    return found


def _documents(args: Args, files: Files) -> Callable[[str], str | None]:
    """The text of a document by its path in `folder`, blanks as single spaces; each is read once."""
    folder = args.get("folder", ".")

    @cache
    def text(path: str) -> str | None:
        inside = ".." not in Path(path).parts and not path.startswith("/")
        data = files(f"{folder}/{path}") if inside else None
        return None if data is None else citations.single_spaced(data.decode("utf-8", "replace"))

    return text


def _judge_elsewhere(args: Args, data: bytes, name: str, files: Files) -> list[Finding]:
    return [Finding("judge.unasked", "a model judges it: VALIDATOR Judge, or spak verify with a model")]


_TEXTS = {
    "type": ["string", "array"],
    "minLength": 1,
    "minItems": 1,
    "items": {"type": "string", "minLength": 1},
}
"""A text or a list of texts, none of them empty."""
_COUNT = {"type": "integer", "minimum": 0}
_FOLDER = {"type": "string", "minLength": 1}


def _check(
    function: Check, name: str, summary: str, required: Sequence[str] = (), **args: Any
) -> StaticCheck:
    schema = {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": args,
    }
    return StaticCheck(function, NamedEntry(name, summary, schema))


CHECKS: Mapping[str, StaticCheck] = {
    check.entry.name: check
    for check in (
        _check(_contains, "contains", "The artifact has a text.", ["text"], text=_TEXTS),
        _check(_not_contains, "not_contains", "The artifact lacks a text.", ["text"], text=_TEXTS),
        _check(_max_lines, "max_lines", "It has at most so many lines.", ["lines"], lines=_COUNT),
        _check(_max_bytes, "max_bytes", "It has at most so many bytes.", ["bytes"], bytes=_COUNT),
        _check(_no_import, "no_import", "Python that imports none of them.", ["modules"], modules=_TEXTS),
        _check(_no_call, "no_call", "Python that calls none of them.", ["names"], names=_TEXTS),
        _check(_exports_symbol, "exports_symbol", "It defines a name for others.", ["symbol"], symbol=_TEXTS),
        _check(_json_valid, "json_valid", "It is one JSON value."),
        _check(_cites, "cites", "Every claim cites a document that exists.", folder=_FOLDER, min=_COUNT),
        _check(_quotes, "quotes", "Every quote stands in its document.", folder=_FOLDER, min_chars=_COUNT),
        _check(_judge_elsewhere, "judge", "A model finds that it meets a rubric.", ["rubric"], rubric=_TEXTS),
    )
}
"""By name."""

_C_SKIP = re.compile(
    r"//(?:[^\n\\]|\\.|\\\n)*|/\*.*?(?:\*/|\Z)|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*"
    r'|"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'",
    re.DOTALL | re.MULTILINE,
)
_C_HEAD = re.compile(r"([A-Za-z_]\w*)\s*\(")
_C_NOT_NAMES = {"if", "for", "while", "switch", "return", "sizeof", "__attribute__", "__launch_bounds__"}


def c_functions(source: str) -> list[str]:
    """The names of the functions that C or CUDA source defines for others (not `static`), in order.

    An outline, not a parser: comments, strings and preprocessor lines are dropped, both branches of an #if
    count, and a body opened by a macro is not seen. `extern "C" {` and `namespace x {` are looked into.
    """
    text = _C_SKIP.sub(lambda match: '""' if match[0].startswith('"') else " ", source)
    names: list[str] = []
    depth, start = 0, 0
    for match in re.finditer(r"[{};]", text):
        if match[0] == "{":
            head = text[start : match.start()] if depth == 0 else ""
            if depth == 0 and re.fullmatch(r'\s*(?:extern\s*""|namespace\s*\w*)\s*', head):
                start = match.end()
                continue
            names += _defined(head)
            depth += 1
        elif match[0] == "}":
            depth = max(0, depth - 1)
        if depth == 0:
            start = match.end()
    return names


def _defined(head: str) -> list[str]:
    if "(" not in head or "=" in head.split("(")[0] or re.search(r"\bstatic\b", head):
        return []
    found = [match[1] for match in _C_HEAD.finditer(head) if match[1] not in _C_NOT_NAMES]
    return found[:1]


def _texts(args: Args, key: str) -> list[str]:
    value = args[key]
    return [value] if isinstance(value, str) else list(value)


def _parse(data: bytes) -> ast.Module | Finding:
    if len(data) > MAX_SOURCE:
        return Finding("too_large", f"more than {MAX_SOURCE} bytes of Python")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except SyntaxError as error:
        return Finding("invalid_python", error.msg, error.lineno or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return Finding("invalid_python", f"cannot be parsed: {type(error).__name__}")


def _imports(tree: ast.Module) -> Iterator[tuple[str | None, int]]:
    """Imported modules with lines; None for a name that is only known at run time."""
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield base, node.lineno
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _dotted(node.func, aliases) in (
            "__import__",
            "builtins.__import__",
            "importlib.import_module",
            "importlib.__import__",
        ):
            first = node.args[0] if node.args else None
            constant = isinstance(first, ast.Constant) and isinstance(first.value, str)
            yield (first.value if constant else None), node.lineno  # type: ignore[union-attr]


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Local name to the dotted name that an import gave it."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    names[alias.asname] = alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr, aliases: Mapping[str, str]) -> str:
    """`os.path.join` for the expression that says so, aliases resolved; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([aliases.get(node.id, node.id), *reversed(parts)])


def _top_level(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names.update(target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                names.add(name)
            case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
                names.update(alias.asname or alias.name for alias in aliases)
    return names
