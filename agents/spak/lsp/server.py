"""The server: which request is answered by which feature, and when a text is looked at anew.

Takes a Catalog; `serve` talks on two file descriptors until the client ends and gives the exit code. A
change is analysed SETTLE_S after the last one, or LATEST_S after the first one that still waits, so that fast
typing costs one analysis and never starves; requests look at the newest text at once. Nothing is written
anywhere and nothing is run.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

from spak import __version__
from spak.kernel.foresee import Keys
from spak.lang.catalog import Catalog
from spak.lang.features import (
    complete,
    definition,
    folds,
    hover,
    prepare_rename,
    references,
    rename,
    symbols,
)
from spak.lang.format import format_text
from spak.lsp import answers
from spak.lsp.documents import Documents, UnknownDocument
from spak.lsp.wire import Conversation
from spak.policy.law import Law

SETTLE_S = 0.02
LATEST_S = 0.25
TRIGGERS = [".", "{", "[", "(", ">", ":", '"', ","]


class Protocol(LanguageServerProtocol):
    """pygls's protocol with our documents in the place of its workspace's."""

    _server: Server

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Open a document before pygls does what it does itself."""
        self._server.opened(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Change a document."""
        self._server.changed(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Close a document."""
        self._server.closed(params)


class Server(LanguageServer):
    """The language server: the open documents, and what is published about them."""

    def __init__(self, catalog: Catalog, law: Law | None = None, approvers: Keys | None = None) -> None:
        self.catalog = catalog
        self.documents = Documents(catalog, law, approvers)
        self._waiting: dict[str, tuple[asyncio.TimerHandle, float]] = {}
        """By document: the analysis to come, and when it was first wanted."""
        super().__init__(
            "spak",
            __version__,
            protocol_cls=Protocol,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
        )

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A fault of ours goes to the client's log, not to its face."""
        self.log(f"{type(error).__name__}: {error}", types.MessageType.Error)

    def log(self, text: str, kind: types.MessageType) -> None:
        """Send a line to the client's log."""
        self.window_log_message(types.LogMessageParams(kind, text))

    # ---- documents

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Take a document that the client opened; analyse it and what imports it."""
        document = self.documents.open(params.text_document)
        self.analyse(document.uri)
        self.recheck_importers(document.uri)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Take a change; a document that is not open is logged."""
        try:
            document = self.documents.change(params)
        except UnknownDocument as error:
            self.log(f"a change of a document that is not open: {error}", types.MessageType.Warning)
            return
        self.analyse_soon(document.uri)
        self.recheck_importers(document.uri)

    def analyse_soon(self, uri: str) -> None:
        """Look at a document when it has come to rest."""
        now = time.monotonic()
        handle, first = self._waiting.pop(uri, (None, now))
        if handle is not None:
            handle.cancel()
        delay = max(0.0, min(SETTLE_S, first + LATEST_S - now))
        self._waiting[uri] = asyncio.get_running_loop().call_later(delay, self.analyse, uri), first

    def recheck_importers(self, uri: str = "") -> None:
        """Another file changed: look again at whatever imports something."""
        for other in self.documents.importing(uri):
            other.refresh()
            self.analyse_soon(other.uri)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document and take its diagnostics away."""
        uri = params.text_document.uri
        handle, _ = self._waiting.pop(uri, (None, 0.0))
        if handle is not None:
            handle.cancel()
        if self.documents.close(uri):
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))
            self.recheck_importers(uri)

    def analyse(self, uri: str) -> None:
        """Publish what is wrong with a document as it stands."""
        self._waiting.pop(uri, None)
        document = self.documents.get(uri)
        if document is None:
            return
        found = [answers.diagnostic(document, item) for item in document.diagnostics]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, found, version=document.version)
        )

    # ---- what the client can do

    @property
    def snippets(self) -> bool:
        """Whether the client takes snippets as completions."""
        return bool(_ability(self.client_capabilities, "completion", "completion_item", "snippet_support"))

    @property
    def trees(self) -> bool:
        """Whether the client takes symbols inside symbols."""
        known = ("document_symbol", "hierarchical_document_symbol_support")
        return bool(_ability(self.client_capabilities, *known))

    @property
    def versioned(self) -> bool:
        """Whether the client takes edits of a version."""
        workspace = self.client_capabilities.workspace
        edit = workspace.workspace_edit if workspace is not None else None
        return bool(edit is not None and edit.document_changes)


def _ability(found: types.ClientCapabilities, *path: str) -> Any:
    value: Any = found.text_document
    for name in path:
        value = getattr(value, name, None)
    return value


def make(catalog: Catalog, law: Law | None = None, approvers: Keys | None = None) -> Server:
    """A server with every feature registered."""
    server = Server(catalog, law, approvers)
    _register_reading(server)
    _register_names(server)
    _register_actions(server)
    _register_shape(server)
    return server


def serve(catalog: Catalog, law: Law, approvers: Keys, source: int, sink: int) -> int:
    """Talk to one client on two file descriptors; the exit code."""
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)  # its tracebacks are no news for an editor
    return asyncio.run(Conversation(make(catalog, law, approvers).protocol, source, sink).run())


def _register_reading(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.documents.encoding = str(server.workspace.position_encoding)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS))
    def completion(params: types.CompletionParams) -> types.CompletionList:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return types.CompletionList(False, [])
        found = complete(document.view, document.offset(params.position))
        items = [
            answers.completion(document, item, order, server.snippets) for order, item in enumerate(found)
        ]
        return types.CompletionList(False, items)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def on_hover(params: types.HoverParams) -> types.Hover | None:
        document = server.documents.get(params.text_document.uri)
        found = hover(document.view, document.offset(params.position)) if document is not None else None
        if document is None or found is None:
            return None
        shown = f"{found.markdown}\n\n[Documentation]({answers.docs_link(found.section)})"
        return types.Hover(answers.markdown(shown), document.range(found.start, found.end))


def _register_names(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def on_definition(params: types.DefinitionParams) -> list[types.Location]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        return answers.locations(document, definition(document.view, document.offset(params.position)))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def on_references(params: types.ReferenceParams) -> list[types.Location]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        declaration = params.context.include_declaration
        found = references(document.view, document.offset(params.position), declaration)
        return answers.locations(document, found)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        found = references(document.view, document.offset(params.position))
        return [types.DocumentHighlight(document.range(place.start, place.end)) for place in found]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def on_prepare(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        document = server.documents.get(params.text_document.uri)
        place = (
            prepare_rename(document.view, document.offset(params.position)) if document is not None else None
        )
        if document is None or place is None:
            return None
        text = document.text[place.start : place.end]
        return types.PrepareRenamePlaceholder(document.range(place.start, place.end), text)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def on_rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return None
        found = rename(document.view, document.offset(params.position), params.new_name)
        if found.problem:
            raise _refused(found.problem)
        return answers.workspace_edit(document, found.edits, server.versioned)


def _refused(problem: str) -> Exception:
    from pygls.exceptions import JsonRpcInvalidParams

    return JsonRpcInvalidParams(problem)


def _register_actions(server: Server) -> None:
    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        found = [item for item in document.view.diagnostics if item.fix and not item.file]
        start, end = document.offset(params.range.start), document.offset(params.range.end)
        made: list[types.CodeAction] = []
        if _asks_for(params, types.CodeActionKind.QuickFix):
            near = [item for item in found if item.start <= end and start <= item.end]
            made += [answers.quick_fix(document, item, server.versioned) for item in near]
        if _asks_for(params, types.CodeActionKind.SourceFixAll):
            every = answers.fix_all(document, found, server.versioned)
            made += [every] if every is not None else []
        return made

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def on_format(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        document = server.documents.get(params.text_document.uri)
        if document is None or not document.view.parsed.ok:
            return None
        return answers.formatted(document, format_text(document.view.parsed).text)


def _asks_for(params: types.CodeActionParams, kind: str) -> bool:
    """True when the client asks for this kind, or one above it, or does not say."""
    only = params.context.only
    return not only or any(kind == item or kind.startswith(f"{item}.") for item in map(str, only))


def _register_shape(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def on_symbols(
        params: types.DocumentSymbolParams,
    ) -> list[types.DocumentSymbol] | list[types.SymbolInformation]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        found = symbols(document.view)
        if server.trees:
            return [answers.symbol(document, item) for item in found]
        return list(answers.flat_symbols(document, found))

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    def on_folds(params: types.FoldingRangeParams) -> list[types.FoldingRange]:
        document = server.documents.get(params.text_document.uri)
        return list(answers.folding(document, folds(document.view))) if document is not None else []

    legend = types.SemanticTokensLegend(list(answers.LEGEND), [])

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    def tokens(params: types.SemanticTokensParams) -> types.SemanticTokens:
        document = server.documents.get(params.text_document.uri)
        return types.SemanticTokens(answers.semantic_tokens(document) if document is not None else [])
