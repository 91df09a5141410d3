"""Findings of `spak check` as SARIF 2.1.0, which code hosts show beside the lines of a change.

Takes the documents that `spak check --json` prints; gives the log as JSON. Columns count characters, as ours
do. Source: OASIS SARIF 2.1.0, sections 3.13 to 3.30.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from spak import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def sarif(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One run of the tool; each finding is a result, each code a rule."""
    results, codes = [], set()
    for document in documents:
        for found in document["diagnostics"]:
            codes.add(found["code"])
            results.append(_result(found.get("file") or document["file"], found))
    rules = [{"id": code} for code in sorted(codes)]
    driver = {"name": "spak check", "version": __version__, "rules": rules}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _result(file: str, found: Mapping[str, Any]) -> dict[str, Any]:
    region = {
        "startLine": found["line"],
        "startColumn": found["column"],
        "endLine": found["end_line"],
        "endColumn": found["end_column"],
    }
    hint = f" ({found['hint']})" if found["hint"] else ""
    place = {"artifactLocation": {"uri": _uri(file)}, "region": region}
    return {
        "ruleId": found["code"],
        "level": LEVELS[found["severity"]],
        "message": {"text": f"{found['message']}{hint}"},
        "locations": [{"physicalLocation": place}],
    }


def _uri(file: str) -> str:
    path = PurePath(file)
    text = quote(path.as_posix().encode("utf-8", "surrogateescape"))
    return f"file://{text}" if path.is_absolute() else text
