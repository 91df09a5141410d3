"""Readers of what tools print as one JSON document. Each gives None where standard output is not one.

Sources: OASIS SARIF 2.1.0 (3.27 result, 3.27.10 level, 3.29 physicalLocation, 3.20.21 notifications); the
JSON forms of ruff (`--output-format=json`), eslint (`-f json`) and pyright (`--outputjson`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spak.diagnostics.shape import Found, diagnostic, relative, severity

RUFF_ERRORS = ("E9", "F63", "F7", "F82")
"""Findings of ruff that are errors: broken syntax, comparisons that never hold, undefined names."""

Reader = Callable[[str, str], list[Found] | None]


def _document(items: Callable[[Any], Iterator[Found]], empty: str = "") -> Reader:
    def read(stdout: str, stderr: str) -> list[Found] | None:
        try:
            return list(items(json.loads(stdout.strip() or empty)))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            return None

    return read


def _ruff(document: Any) -> Iterator[Found]:
    for item in document:
        code = item["code"] or "invalid-syntax"
        severe = code == "invalid-syntax" or code.startswith(RUFF_ERRORS)
        place = relative(item["filename"])
        yield diagnostic(
            "error" if severe else "warning", code, item["message"], place, item["location"]["row"]
        )


def _eslint(document: Any) -> Iterator[Found]:
    for file in document:
        for item in file["messages"]:
            level = severity("eslint", item["severity"])
            code = item.get("ruleId") or "parsing"
            yield diagnostic(
                level, code, item["message"], relative(file["filePath"]), _line(item.get("line"))
            )


def _pyright(document: Any) -> Iterator[Found]:
    for item in document["generalDiagnostics"]:
        level = severity("pyright", item["severity"])
        line = _line(item.get("range", {}).get("start", {}).get("line"), first=0)
        yield diagnostic(level, item.get("rule", ""), item["message"], relative(item["file"]), line)


def _sarif(document: Any) -> Iterator[Found]:
    for run in document["runs"]:
        for result in run.get("results") or ():
            if result.get("suppressions"):
                continue  # 3.27.23: a person has accepted it
            yield _result(result, run)
        for call in run.get("invocations", ()):
            for note in call.get("toolExecutionNotifications", ()):
                code = str(note.get("descriptor", {}).get("id", ""))
                yield diagnostic(
                    severity("sarif", note.get("level", "warning")), code, _text(note), *_place(note)
                )


def _result(result: Mapping[str, Any], run: Mapping[str, Any]) -> Found:
    rules = run["tool"]["driver"].get("rules", [])
    index = result.get("ruleIndex", -1)
    rule = rules[index] if 0 <= index < len(rules) else {}
    code = str(result.get("ruleId") or rule.get("id", ""))
    rule = rule or next((one for one in rules if one.get("id") == code), {})
    kind = result.get("kind", "fail")
    usual = rule.get("defaultConfiguration", {}).get("level", "warning") if kind == "fail" else "none"
    message = _text(result) or _text({"message": rule.get("shortDescription", {})})
    return diagnostic(severity("sarif", result.get("level", usual)), code, message, *_place(result))


def _text(item: Mapping[str, Any]) -> str:
    message = item.get("message", {})
    return str(message.get("text", message.get("markdown", "")))


def _place(item: Mapping[str, Any]) -> tuple[str, int]:
    locations = item.get("locations") or [{}]
    where = locations[0].get("physicalLocation", {})
    file = relative(str(where.get("artifactLocation", {}).get("uri", "")))
    return file, _line(where.get("region", {}).get("startLine"))


def _line(value: Any, first: int = 1) -> int:
    return value + 1 - first if type(value) is int and value >= first else 0


ruff = _document(_ruff, "[]")
eslint = _document(_eslint)
pyright = _document(_pyright)
sarif = _document(_sarif)
