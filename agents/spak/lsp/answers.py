"""Answers: what the features give, as the types of the protocol.

Takes a Document and plain dataclasses; gives lsprotocol types with positions of the client. It decides
nothing about specs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import get_args

from lsprotocol import types

from spak import data
from spak.errors import SpakError
from spak.lang import ast
from spak.lang.diagnostics import Diagnostic, Edit, Severity
from spak.lang.features import Completion, Fold, Place, Symbol, marks
from spak.lang.features.highlight import MarkKind
from spak.lang.imports import settings_of
from spak.lsp.documents import Document
from spak.lsp.positions import Positions

SOURCE = "spak"
LEGEND: tuple[str, ...] = get_args(MarkKind)
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}
_UNNECESSARY = frozenset({"lang.unreachable_task"})
_ITEMS = {
    "keyword": types.CompletionItemKind.Keyword,
    "setting": types.CompletionItemKind.Property,
    "field": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.EnumMember,
    "task": types.CompletionItemKind.Function,
    "step": types.CompletionItemKind.Method,
    "check": types.CompletionItemKind.Method,
    "tool": types.CompletionItemKind.Module,
    "validator": types.CompletionItemKind.Class,
    "proposer": types.CompletionItemKind.Class,
    "backend": types.CompletionItemKind.Class,
    "launcher": types.CompletionItemKind.EnumMember,
    "trigger": types.CompletionItemKind.Event,
    "variable": types.CompletionItemKind.Variable,
    "function": types.CompletionItemKind.Function,
    "type": types.CompletionItemKind.TypeParameter,
}
_SYMBOLS = {
    "agent": types.SymbolKind.Class,
    "task": types.SymbolKind.Function,
    "step": types.SymbolKind.Method,
    "check": types.SymbolKind.Boolean,
    "model": types.SymbolKind.Namespace,
    "text": types.SymbolKind.String,
    "inputs": types.SymbolKind.Struct,
    "input": types.SymbolKind.Field,
    "setting": types.SymbolKind.Property,
}


# ---- diagnostics and fixes -----------------------------------------------------------------------------


def diagnostic(document: Document, found: Diagnostic) -> types.Diagnostic:
    """A finding; one about an imported file stands at the IMPORT and leads there."""
    page = page_of(found.code)
    message = f"{found.message}\n{found.hint}" if found.hint else found.message
    place, related = document.range(found.start, found.end), None
    if found.file:
        there = types.Position(found.line - 1, found.column - 1)
        uri = Path(found.file).as_uri()
        related = [
            types.DiagnosticRelatedInformation(types.Location(uri, types.Range(there, there)), found.message)
        ]
        message = f"{Path(found.file).name}:{found.line}: {message}"
        place = import_of(document, found.file)
    return types.Diagnostic(
        range=place,
        message=message,
        severity=_SEVERITIES[found.severity],
        code=found.code,
        code_description=types.CodeDescription(page) if page else None,
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if found.code in _UNNECESSARY else None,
        related_information=related,
    )


def import_of(document: Document, file: str) -> types.Range:
    """The IMPORT or POLICY that brought a file, or the first IMPORT, which brought what imports it."""
    spec, source = document.view.spec, document.view.source
    entries = [*settings_of(spec, "IMPORT"), *settings_of(spec, "POLICY")]
    named = [item for item in entries if isinstance(item.value, ast.Text) and file.endswith(item.value.value)]
    for item in (*named, *entries):
        return document.range(*source.offsets(item.start, item.end))
    return document.range(0, 0)


@lru_cache(maxsize=1)
def _pages() -> dict[str, str]:
    """The place of each code in docs/errors.md; none of them where that page did not ship."""
    try:
        path = data.path("docs/errors.md")
    except SpakError:
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    codes = ((number, re.match(r"- `([a-z]+\.\w+)`", line)) for number, line in enumerate(lines, start=1))
    return {match[1]: f"{path.as_uri()}#L{number}" for number, match in codes if match}


def page_of(code: str) -> str:
    """Where the paragraph of an error code is, as a link; empty where it did not ship."""
    return _pages().get(code, "")


def formatted(document: Document, new: str) -> list[types.TextEdit]:
    """The one edit that turns the text into another, without what both begin and end with."""
    old = document.text
    if old == new:
        return []
    head = _shared(old, new)
    head -= old[head - 1 : head + 1] == "\r\n"
    tail = _shared(old[head:][::-1], new[head:][::-1])
    tail -= old[len(old) - tail - 1 : len(old) - tail + 1] == "\r\n"
    return [types.TextEdit(document.range(head, len(old) - tail), new[head : len(new) - tail])]


def _shared(left: str, right: str) -> int:
    """How many characters two texts begin with alike, by bisection: comparing slices is fast."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def edits(document: Document, found: Iterable[Edit]) -> list[types.TextEdit | types.AnnotatedTextEdit]:
    """Edits as the protocol has them."""
    return [types.TextEdit(document.range(start, end), text) for start, end, text in found]


def workspace_edit(document: Document, found: Iterable[Edit], versioned: bool) -> types.WorkspaceEdit:
    """The edits of one document; bound to its version where the client can hold it."""
    made = edits(document, found)
    if not versioned:
        plain = [types.TextEdit(item.range, item.new_text) for item in made]
        return types.WorkspaceEdit(changes={document.uri: plain})
    named = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(named, list(made))])


def quick_fix(document: Document, found: Diagnostic, versioned: bool) -> types.CodeAction:
    """The fix of a diagnostic as a code action."""
    fix = found.fix or ()
    return types.CodeAction(
        title=title(document.text, fix),
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic(document, found)],
        is_preferred=True,
        edit=workspace_edit(document, fix, versioned),
    )


def fix_all(document: Document, found: Iterable[Diagnostic], versioned: bool) -> types.CodeAction | None:
    """All fixes that do not get in each other's way, in one step; None where there are fewer than two."""
    taken: list[Edit] = []
    count = 0
    for item in found:
        fix = item.fix or ()
        apart = all(end <= first or other <= start for first, other, _ in taken for start, end, _ in fix)
        same = any(first == start for first, _, _ in taken for start, _, _ in fix)
        if fix and apart and not same:
            taken += fix
            count += 1
    if count < 2:
        return None
    return types.CodeAction(
        title=f"Apply {count} fixes",
        kind=types.CodeActionKind.SourceFixAll,
        edit=workspace_edit(document, sorted(taken), versioned),
    )


def title(text: str, fix: tuple[Edit, ...]) -> str:
    """What a fix does, in words."""
    if len(fix) != 1:
        return f"Make {len(fix)} changes"
    start, end, new = fix[0]
    old = _brief(text[start:end])
    if not new:
        return f"Remove {old}"
    return f"Replace {old} by {_brief(new)}" if end > start else f"Insert {_brief(new)}"


def _brief(text: str) -> str:
    text = " ".join(text.split())
    return f"'{text}'" if len(text) <= 40 else f"'{text[:37]}...'"


# ---- completion, symbols, folds ------------------------------------------------------------------------


def completion(document: Document, item: Completion, order: int, snippets: bool) -> types.CompletionItem:
    """A completion; `order` keeps our order in the client's list."""
    snippet = item.snippet and snippets
    text = item.insert if snippet or not item.snippet else item.label
    return types.CompletionItem(
        label=item.label,
        kind=_ITEMS[item.kind],
        detail=item.detail or None,
        documentation=markdown(item.documentation) if item.documentation else None,
        sort_text=f"{order:04}",
        insert_text_format=types.InsertTextFormat.Snippet if snippet else types.InsertTextFormat.PlainText,
        text_edit=types.TextEdit(document.range(item.start, item.end), text),
    )


def markdown(text: str) -> types.MarkupContent:
    """Markdown as the protocol has it."""
    return types.MarkupContent(types.MarkupKind.Markdown, text)


def docs_link(section: str) -> str:
    """The address of a section of the documentation that ships, as a file of this machine."""
    page, mark, anchor = section.partition("#")
    return f"{data.path(f'docs/{page}.md').as_uri()}{mark}{anchor}"


def locations(document: Document, places: Iterable[Place]) -> list[types.Location]:
    """Places as the protocol has them."""
    return [location(document, place) for place in places]


def location(document: Document, place: Place) -> types.Location:
    """A place of the document, or of the file that it is in."""
    if not place.file:
        return types.Location(document.uri, document.range(place.start, place.end))
    uri = Path(place.file).absolute().as_uri()
    text = document.owner.text_of(Path(place.file))
    there = Positions(text, document.owner.encoding)
    first, last = there.position(place.start), there.position(place.end)
    return types.Location(uri, types.Range(types.Position(*first), types.Position(*last)))


def symbol(document: Document, item: Symbol) -> types.DocumentSymbol:
    """A symbol and those inside it."""
    return types.DocumentSymbol(
        name=item.name,
        kind=_SYMBOLS[item.kind],
        range=document.range(item.start, item.end),
        selection_range=document.range(item.name_start, item.name_end),
        detail=item.detail or None,
        children=[symbol(document, child) for child in item.children],
    )


def flat_symbols(
    document: Document, items: Iterable[Symbol], container: str = ""
) -> Iterator[types.SymbolInformation]:
    """For clients that know no tree."""
    for item in items:
        place = types.Location(document.uri, document.range(item.start, item.end))
        yield types.SymbolInformation(place, item.name, _SYMBOLS[item.kind], container_name=container or None)
        yield from flat_symbols(document, item.children, item.name)


def folding(document: Document, found: Iterable[Fold]) -> Iterator[types.FoldingRange]:
    """By lines; what closes a bracket stays to be seen."""
    seen: set[int] = set()
    for item in found:
        first, _ = document.positions.position(item.start)
        last, _ = document.positions.position(item.end)
        last -= item.kind == "region"
        if last > first and first not in seen:
            seen.add(first)
            yield types.FoldingRange(first, last, kind=types.FoldingRangeKind(item.kind))


def semantic_tokens(document: Document) -> list[int]:
    """The colours, five numbers each, relative to the one before; a text of several lines is one per line."""
    found: list[int] = []
    before = (0, 0)
    for mark in marks(document.view):
        kind = LEGEND.index(mark.kind)
        for start, end in _by_line(document, mark.start, mark.end):
            line, column = document.positions.position(start)
            _, behind = document.positions.position(end)
            step = column - before[1] if line == before[0] else column
            found += (line - before[0], step, behind - column, kind, 0)
            before = line, column
    return found


def _by_line(document: Document, start: int, end: int) -> Iterator[tuple[int, int]]:
    positions = document.positions
    first, last = positions.position(start)[0], positions.position(end)[0]
    for line in range(first, last + 1):
        left, right = max(start, positions.starts[line]), min(end, positions.ends[line])
        if left < right:
            yield left, right
