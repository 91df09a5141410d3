"""The open documents: their text as the client edits it, and the view of each, made when it is asked for.

Takes the notifications of the protocol; gives Documents. What a document imports is read from the other open
documents, or from the disk beside it; nothing is written. A change of a document that was never opened is an
error of the client and raises UnknownDocument.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lsprotocol import types
from pygls.uris import to_fs_path

from spak.inputs import read_text
from spak.kernel.foresee import Keys, foresee
from spak.lang import Parsed, parse
from spak.lang.catalog import Catalog
from spak.lang.checks.evolving import check_blocks
from spak.lang.checks.policy import check_law
from spak.lang.diagnostics import Diagnostic, in_order
from spak.lang.features import View
from spak.lang.imports import Reader, Resolved, resolve
from spak.lang.spec_files import folder_reader
from spak.lsp.positions import Positions
from spak.policy.law import Law
from spak.runner.genesis import shipped
from spak.runner.laws import for_spec


def path_of(uri: str) -> Path | None:
    """The path of a file's URI; None for a document that is no file, or has a name that none can have."""
    try:
        found = to_fs_path(uri) if uri.startswith("file:") else None
    except ValueError:
        return None
    return Path(found) if found and "\0" not in found else None


class UnknownDocument(Exception):
    """The client speaks of a document that is not open."""


class Document:
    """A text and a version of it; each change makes the positions and the view anew."""

    def __init__(self, uri: str, text: str, version: int, owner: Documents) -> None:
        self.uri = uri
        self.text = text
        self.version = version
        self.owner = owner
        self.path = path_of(uri)
        self._positions: Positions | None = None
        self._view: View | None = None
        self._found: tuple[Diagnostic, ...] | None = None

    @property
    def positions(self) -> Positions:
        """Offsets of the text to positions in the encoding that the client chose."""
        if self._positions is None:
            self._positions = Positions(self.text, self.owner.encoding)
        return self._positions

    @property
    def view(self) -> View:
        """The text as features see it, parsed when it is first asked for."""
        if self._view is None:
            follow = self._follow if self.path is not None else None
            self._view = View(parse(self.text, str(self.path or self.uri)), self.owner.catalog, follow)
            self._found = None
        return self._view

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the spec, its POLICY and the axioms that are rules; files by their full path."""
        view = self.view
        if self._found is None:
            whole = self._resolved(view.parsed)
            above = for_spec(self.owner.law, view.parsed.text, self.owner.catalog.tools)
            law = (*check_law(whole, above), *foresee(view.outline, whole, above, self.owner.approvers))
            folder = self.path.parent if self.path is not None else Path()
            blocks = self._blocks()
            placed = (replace(item, file=str(folder / item.file)) if item.file else item for item in law)
            self._found = in_order([*view.diagnostics, *blocks, *placed])
        return self._found

    @property
    def imports(self) -> bool:
        """True when the view has to do with what other files hold; where there is none, one is to come."""
        return self._view is not None and self._view.whole is not self._view.parsed

    def refresh(self) -> None:
        """Forget what other files held."""
        self._view = None

    def _follow(self, parsed: Parsed) -> Parsed:
        return self._resolved(parsed).parsed

    def _blocks(self) -> list[Diagnostic]:
        """What is wrong with marked blocks of the files that the run would begin with."""
        if self.path is None:
            return []
        found = self.view.outline.report.found
        known = len(found)
        check_blocks(self.view.outline, self.owner.reader(self.path.with_suffix("") / self.path.name))
        return found[known:]

    def _resolved(self, parsed: Parsed) -> Resolved:
        return resolve(parsed, self.owner.reader(self.path) if self.path is not None else _nowhere)

    def offset(self, position: types.Position) -> int:
        """The offset of a position of the client, within what the view can see."""
        return min(self.positions.offset(position.line, position.character), len(self.view.text))

    def range(self, start: int, end: int) -> types.Range:
        """A range of the client for two offsets."""
        first, last = self.positions.position(start), self.positions.position(end)
        return types.Range(types.Position(*first), types.Position(*last))

    def change(self, changes: Iterable[types.TextDocumentContentChangeEvent], version: int) -> None:
        """Apply changes in order; each is in positions of the text that the one before it left."""
        for item in changes:
            if isinstance(item, types.TextDocumentContentChangePartial):
                found = item.range
                start = self.positions.offset(found.start.line, found.start.character)
                end = self.positions.offset(found.end.line, found.end.character)
                start, end = min(start, end), max(start, end)
                self.text = self.text[:start] + item.text + self.text[end:]
            else:
                self.text = item.text
            self._positions = self._view = None
        self.version = version


def _nowhere(name: str) -> None:
    """A document that is no file has none beside it."""


class Documents:
    """The files that a client has open, by address."""

    def __init__(self, catalog: Catalog, law: Law | None = None, approvers: Keys | None = None) -> None:
        self.catalog, self.law, self.approvers = catalog, law or shipped(), approvers
        self.encoding = "utf-16"
        self._open: dict[str, Document] = {}

    def open(self, item: types.TextDocumentItem) -> Document:
        """Take a document that the client opened."""
        made = Document(item.uri, item.text, item.version, self)
        self._open[item.uri] = made
        return made

    def change(self, params: types.DidChangeTextDocumentParams) -> Document:
        """Raises: UnknownDocument."""
        found = self._open.get(params.text_document.uri)
        if found is None:
            raise UnknownDocument(params.text_document.uri)
        found.change(params.content_changes, params.text_document.version)
        return found

    def close(self, uri: str) -> bool:
        """True when it was open."""
        return self._open.pop(uri, None) is not None

    def reader(self, spec: Path) -> Reader:
        """The files beside a spec: as they stand in the editor where they are open, else as on the disk."""
        on_disk = folder_reader(spec)
        opened = {item.path: item for item in self._open.values() if item.path is not None}

        def read(name: str) -> bytes | None:
            found = opened.get(spec.parent / name)
            return on_disk(name) if found is None else found.text.encode("utf-8", "replace")

        return read

    def text_of(self, path: Path) -> str:
        """The text of a file, as it stands in the editor where it is open; empty where there is none."""
        for item in self._open.values():
            if item.path == path:
                return item.text
        try:
            return read_text(path, "replace")
        except OSError:
            return ""

    def importing(self, uri: str) -> list[Document]:
        """The other open documents that import something."""
        return [item for item in self._open.values() if item.uri != uri and item.imports]

    def get(self, uri: str) -> Document | None:
        """The open document of an address, if there is one."""
        return self._open.get(uri)
