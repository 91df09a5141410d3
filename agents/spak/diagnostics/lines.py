"""Readers of what tools print line by line: text, or a JSON object or array a line, among other lines.

A tool that found nothing prints nothing, so these give a list always. Colours are left out: a terminal's
sequences are no part of a name. Sources: the manuals of gcc ("Formatting of Diagnostics"), clang, rustc
("JSON Output"), cargo ("External tools"), go, tsc, mypy and pytest (`--tb`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from spak.diagnostics.shape import Found, diagnostic, relative, severity

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = r"(?P<file>[^\s:][^\n:]*):(?P<line>\d+)"
_COMPILER = re.compile(
    rf"^(?:{_PLACE}(?::\d+)?|[\w+.-]*(?:clang|gcc|cc1|cc1plus|[gc]\+\+|as|ld)[\w+.-]*): "
    r"(?P<level>warning|(?:fatal )?error|note|internal compiler error): "
    r"(?P<message>[^\n]*?)(?: \[(?P<option>-W[^\]\n]*)\])?$",
    re.M,
)
_LINKER = re.compile(r"(?:^|: )((?:undefined reference to|multiple definition of|cannot find) [^\n]{1,200})")
_GO = re.compile(rf"^(?:vet: |\s+)?{_PLACE}(?::\d+)?: (?P<message>[^\n]*)$", re.M)
_GO_PANIC = re.compile(r"^(?:panic|fatal error): (?P<message>[^\n]*?)(?: \[recovered\])?$", re.M)
_GO_FRAME = re.compile(rf"^\t{_PLACE}(?: \+0x[0-9a-f]+)?$", re.M)
_GO_ITSELF = ("/src/runtime/", "/src/testing/")
_TSC = re.compile(
    r"^(?:(?P<file>[^\n(:][^\n(]*?)(?:\((?P<line>\d+),\d+\): |:(?P<row>\d+):\d+ - ))?"
    r"(?P<level>error|warning|message|suggestion) (?P<code>TS\d+): (?P<message>[^\n]*)$",
    re.M,
)
_MYPY = re.compile(
    rf"^{_PLACE}(?::\d+)?(?::\d+:\d+)?: (?P<level>error|warning|note): "
    r"(?P<message>[^\n]*?)(?:  \[(?P<code>[\w-]+)\])?$",
    re.M,
)
_RUST = re.compile(
    r"^(?P<level>error: internal compiler error|error|warning)(?:\[(?P<code>\w+)\])?: (?P<message>[^\n]*)\n"
    r"[ \t]*--> (?P<file>[^\n]+?):(?P<line>\d+):\d+$",
    re.M,
)
_RUST_PANIC = re.compile(
    rf"^thread '[^\n]*' (?:\(\d+\) )?panicked at {_PLACE}:\d+:\n(?P<message>[^\n]*)$", re.M
)
_FRAME = re.compile(rf'^(?:  File "(?P<of>[^"\n]+)", line (?P<at>\d+)|{_PLACE}: in )')
_RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
_LONG = re.compile(rf"^{_PLACE}: (?P<kind>[A-Za-z_][\w.]*)$")
_SUMMARY = re.compile(r"^(?:FAILED|ERROR) (?P<id>[^\n]+?)(?: - (?P<message>[^\n]*))?$", re.M)


def gcc(stdout: str, stderr: str) -> list[Found]:
    """Of gcc (text, or JSON with `-fdiagnostics-format=json`), clang and the linker."""
    found: list[Found] = []
    rest: list[str] = []
    for line in _plain(stdout, stderr).split("\n"):
        if line.startswith("["):
            found.extend(map(_gcc_item, _objects(line)))
            continue
        rest.append(line)
    return found + [_compiled(match) for match in _COMPILER.finditer("\n".join(rest))] + _linked(rest)


def _compiled(match: re.Match[str]) -> Found:
    broken = match["level"] == "internal compiler error"
    level = "panic" if broken else severity("gcc", match["level"])
    code = match["option"] or (match["level"].split()[-1] if match["file"] else "option")
    return diagnostic(level, code, match["message"], relative(match["file"] or ""), match["line"])


def _gcc_item(item: dict[str, Any]) -> Found:
    locations = item.get("locations")
    first = locations[0] if isinstance(locations, list) and locations else {}
    caret = first.get("caret") if isinstance(first, dict) else None
    caret = caret if isinstance(caret, dict) else {}
    kind = str(item.get("kind", "error"))
    return diagnostic(
        severity("gcc", kind),
        str(item.get("option", kind)),
        str(item.get("message", "")),
        relative(str(caret.get("file", ""))),
        caret.get("line"),
    )


def _linked(rows: list[str]) -> list[Found]:
    """What the linker said."""
    found = [match for match in map(_LINKER.search, rows) if match is not None]
    return [diagnostic("error", "link", match[1].strip()) for match in found]


def rustc(stdout: str, stderr: str) -> list[Found]:
    """Of rustc and cargo: JSON (`--error-format=json`, `--message-format=json`), text, panics of tests."""
    found = []
    for line in (*stdout.split("\n"), *stderr.split("\n")):
        for item in _objects(line) if line.startswith("{") else ():
            message = item.get("message") if item.get("reason") == "compiler-message" else item
            if isinstance(message, dict) and isinstance(message.get("spans"), list) and not _sums_up(message):
                found.append(_rust_item(message))
    text = _plain(stdout, stderr)
    for match in _RUST.finditer(text):
        level = severity("rustc", match["level"])
        code = match["code"] or match["level"]
        found.append(diagnostic(level, code, match["message"], relative(match["file"]), match["line"]))
    for match in _RUST_PANIC.finditer(text):
        place = relative(match["file"]), match["line"]
        found.append(diagnostic("panic", "panic", match["message"], *place))
    return found


def _sums_up(message: dict[str, Any]) -> bool:
    """Whether it only counts what was said before."""
    text = str(message.get("message", ""))
    return message.get("level") == "failure-note" or text.startswith("aborting due to ")


def _rust_item(item: dict[str, Any]) -> Found:
    spans = [span for span in item["spans"] if isinstance(span, dict)]
    span = next((span for span in spans if span.get("is_primary")), {})
    code = item.get("code")
    level = item.get("level")
    named = str(code.get("code", "")) if isinstance(code, dict) else str(level)
    file = relative(str(span.get("file_name", "")))
    return diagnostic(
        severity("rustc", level), named, str(item.get("message", "")), file, span.get("line_start")
    )


def go(stdout: str, stderr: str) -> list[Found]:
    """Of go build, go vet and go test; a panic is named at the first line of a frame that is not Go's own."""
    text = _plain(stdout, stderr)
    found = [
        diagnostic("error", "go", match["message"], relative(match["file"]), match["line"])
        for match in _GO.finditer(text)
        if match["file"].endswith(".go")
    ]
    if match := _GO_PANIC.search(text):
        frames = (frame for frame in _GO_FRAME.finditer(text, match.end()))
        own = next((frame for frame in frames if not any(part in frame[0] for part in _GO_ITSELF)), None)
        place = (relative(own["file"]), own["line"]) if own else ("", 0)
        found.append(diagnostic("panic", "panic", match["message"], *place))
    return found


def tsc(stdout: str, stderr: str) -> list[Found]:
    """Of the TypeScript compiler, with and without `--pretty`."""
    return [
        diagnostic(
            severity("tsc", match["level"]),
            match["code"],
            match["message"],
            relative(match["file"] or ""),
            match["line"] or match["row"],
        )
        for match in _TSC.finditer(_plain(stdout, stderr))
    ]


def mypy(stdout: str, stderr: str) -> list[Found]:
    """Of mypy: text, or an object a line (`--output=json`)."""
    found = []
    for line in stdout.split("\n"):
        for item in _objects(line) if line.startswith("{") else ():
            level = severity("mypy", item.get("severity"))
            file = relative(str(item.get("file", "")))
            message = str(item.get("message", ""))
            found.append(diagnostic(level, str(item.get("code") or ""), message, file, item.get("line")))
    for match in _MYPY.finditer(_plain(stdout, stderr)):
        level = severity("mypy", match["level"])
        place = relative(match["file"]), match["line"]
        found.append(diagnostic(level, match["code"] or "", match["message"], *place))
    return found


def pytest(stdout: str, stderr: str) -> list[Found]:
    """Of pytest in the forms short, long and native, and of a traceback of Python: the innermost place of
    each exception, with its class as the code. Where only the summary names a test, its id is the message."""
    text = _plain(stdout, stderr)
    found = list(_raised(text.split("\n")))
    if not found:
        for match in _SUMMARY.finditer(text):
            file = match["id"].partition("::")[0]
            found.append(diagnostic("error", "failed", match["message"] or match["id"], relative(file)))
    return found


def _raised(rows: list[str]) -> Iterator[Found]:
    place: tuple[str, str | int] = ("", 0)
    said: tuple[str, str] = ("", "")
    for before, row in pairwise(["", *rows]):
        if long := _LONG.match(row):  # --tb=long names place and class after what was raised
            yield diagnostic("error", long["kind"], said[1], relative(long["file"]), long["line"])
            said = ("", "")
        elif frame := _FRAME.match(row):
            place = (relative(frame["of"] or frame["file"]), frame["at"] or frame["line"])
        elif row.startswith("E  ") and not before.startswith("E  "):
            said = _exception(row[1:].strip())
        elif place[0] and row[:1].strip() and not row.startswith("E  "):
            said = _exception(row)
        if place[0] and said[0]:
            yield diagnostic("error", *said, *place)
            place, said = ("", 0), ("", "")


def _exception(row: str) -> tuple[str, str]:
    """Class and message; pytest leaves the class of a bare assert out."""
    match = _RAISED.match(row)
    return (match["kind"], match["message"] or "") if match else ("AssertionError", row)


def _plain(*texts: str) -> str:
    return _COLOUR.sub("", "\n".join(texts)).replace("\r\n", "\n")


def _objects(line: str) -> list[dict[str, Any]]:
    """The object of a line of JSON, or those of its array; none where the line is no JSON."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
