"""What a client may do wrong: garbage, strange documents, haste, and leaving in every way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from tempfile import TemporaryFile

import pytest
from lsprotocol import types

from lsp_kit import (
    END,
    INITIALIZE,
    SERVER,
    WAIT_S,
    Client,
    at,
    document,
    finish,
    frame,
    notice,
    raw,
    request,
    session,
    start,
)
from process_kit import start as start_child
from spak import config
from spak.lsp import server as lsp_server

OPEN = {"textDocument": {"uri": "untitled:a", "languageId": "spak", "version": 1, "text": "task a {"}}


def errors(found: list[dict[str, object]]) -> list[tuple[object, int]]:
    return [(item["id"], item["error"]["code"]) for item in found if "error" in item]  # type: ignore[index]


@pytest.mark.parametrize(
    "garbage",
    [
        b"\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"\xff\xfe\x00\x01\n\n",
        b"x" * 20_000 + b"\n\r\n",
        frame(b"{"),
        frame(b""),
        frame(b"\xff\xff"),
        frame(b"[" * 100_000),
        frame(b"nothing"),
    ],
    ids=lambda data: repr(data[:24]),
)
def test_garbage_is_refused_and_the_talk_goes_on(garbage: bytes) -> None:
    code, found, err = raw(INITIALIZE + garbage + END)
    assert code == 0
    assert err == b""
    assert (None, -32700) in errors(found)
    assert found[-1] == {"jsonrpc": "2.0", "id": 99, "result": None}


@pytest.mark.parametrize("message", [[], 5, "text", None, {}, {"jsonrpc": "1.0", "id": 3, "method": "x"}])
def test_json_that_is_no_message_is_refused(message: object) -> None:
    code, found, err = raw(INITIALIZE + frame(message) + END)
    assert (code, err) == (0, b"")
    assert errors(found)[0][1] in (-32600, -32700)


@pytest.mark.parametrize("number", [[1], {"a": 1}, 1.5, True])
def test_a_request_with_a_strange_id_is_refused_and_does_nothing(number: object) -> None:
    code, found, err = raw(INITIALIZE + frame({"jsonrpc": "2.0", "id": number, "method": "shutdown"}) + END)
    assert (code, err) == (0, b"")
    assert errors(found) == [(None, -32600)]
    assert found[-1] == {"jsonrpc": "2.0", "id": 99, "result": None}


@pytest.mark.parametrize("process", [2**70, -1, 0])
def test_a_client_whose_process_can_not_be_is_served_all_the_same(process: int) -> None:
    params = {"capabilities": {}, "processId": process, "rootUri": None}
    code, found, err = raw(request(1, "initialize", params) + notice("initialized", {}) + END)
    assert (code, err) == (0, b"")
    assert errors(found) == []
    assert found[0]["id"] == 1


@pytest.mark.parametrize("uri", ["file:///a%00b/x.spak", "file://[x/a.spak", "file:", "", "http://[::1"])
def test_a_document_whose_file_can_not_be_is_served_all_the_same(uri: str) -> None:
    text = 'AGENT A LEVEL 1 { IMPORT "b.spak" START -> a TASK a { } }'
    opened = {"textDocument": {"uri": uri, "languageId": "spak", "version": 1, "text": text}}
    place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 27}}
    methods = ["hover", "completion", "definition", "documentSymbol", "semanticTokens/full"]
    data = b"".join(request(10 + i, f"textDocument/{name}", place) for i, name in enumerate(methods))
    code, found, err = raw(INITIALIZE + notice("textDocument/didOpen", opened) + data + END)
    assert (code, err) == (0, b"")
    assert errors(found) == []
    assert [item["params"]["uri"] for item in found if "params" in item] == [uri]  # type: ignore[index]
    assert len([item for item in found if item.get("id") in range(10, 15)]) == len(methods)


def test_who_may_ask_when() -> None:
    hover = {"textDocument": {"uri": "untitled:a"}, "position": {"line": 0, "character": 0}}
    data = (
        request(2, "textDocument/hover", hover)
        + notice("textDocument/didOpen", OPEN)
        + INITIALIZE
        + request(3, "initialize", {"capabilities": {}})
        + request(4, "textDocument/hover", {"textDocument": 7})
        + request(5, "no/such/method", {})
        + notice("no/such/notice", {})
        + notice("textDocument/didOpen", {"textDocument": 5})
        + notice("$/cancelRequest", {"id": 77})
        + frame({"jsonrpc": "2.0", "id": 12, "result": "to no question"})
        + request(98, "shutdown")
        + request(6, "textDocument/hover", hover)
        + notice("exit")
        + request(7, "textDocument/hover", hover)
    )
    code, found, err = raw(data)
    assert (code, err) == (0, b"")
    assert errors(found) == [(2, -32002), (3, -32600), (4, -32602), (5, -32601), (6, -32600)]
    assert not [item for item in found if item.get("id") == 7]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (INITIALIZE + END, 0),
        (INITIALIZE + request(9, "shutdown"), 0),
        (INITIALIZE + notice("exit"), 1),
        (INITIALIZE, 1),
        (INITIALIZE[:-10], 1),
        (b"", 1),
        (notice("exit"), 1),
        (b"Content-Length: 100\r\n\r\n{", 1),
    ],
)
def test_the_exit_code_says_how_the_client_left(data: bytes, code: int) -> None:
    assert raw(data)[0::2] == (code, b"")


def test_requests_about_a_document_that_is_not_open_find_nothing() -> None:
    place = {"textDocument": {"uri": "file:///nowhere.spak"}, "position": {"line": 3, "character": 9}}
    methods = ["hover", "completion", "definition", "documentHighlight", "prepareRename"]
    methods += ["documentSymbol", "foldingRange", "semanticTokens/full"]
    data = b"".join(request(10 + i, f"textDocument/{name}", place) for i, name in enumerate(methods))
    data += request(30, "textDocument/rename", {**place, "newName": "x"})
    data += request(31, "textDocument/references", {**place, "context": {"includeDeclaration": True}})
    data += request(32, "textDocument/formatting", {**place, "options": {"tabSize": 2, "insertSpaces": True}})
    edge = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    asked = {**place, "range": edge, "context": {"diagnostics": []}}
    data += request(33, "textDocument/codeAction", asked)
    named = {"uri": "file:///nowhere.spak", "version": 2}
    data += notice("textDocument/didChange", {"textDocument": named, "contentChanges": [{"text": "x"}]})
    data += notice("textDocument/didClose", {"textDocument": {"uri": "file:///nowhere.spak"}})
    code, found, err = raw(INITIALIZE + data + END)
    assert (code, err) == (0, b"")
    assert errors(found) == []
    empty = {None, json.dumps([]), json.dumps({"isIncomplete": False, "items": []}), json.dumps({"data": []})}
    results = [item["result"] for item in found if isinstance(item.get("id"), int) and 10 <= item["id"] <= 33]
    assert len(results) == 12
    assert {None if item is None else json.dumps(item) for item in results} <= empty
    (log,) = [item for item in found if item.get("method") == "window/logMessage"]
    assert "not open" in log["params"]["message"]


STRANGE = {
    "empty": "",
    "nul": "task a { \0 }",
    "prose": "Here is your spec:\n```spak\ntask a { }\n```\n",
    "control": "\x1b]0;title\x07 task \u202e a { }",
    "deep": "task a { x " + "[" * 5000,
    "braces": "}" * 3000,
    "surrogate": 'task a { GOAL "\ud800" }',
    "quotes": '"' * 3001,
    "long line": "task a { GOAL " + "x" * 200_000 + " }",
    "crlf": "task a {\r\n  step s: tool.nothing { }\r\n}\r\n",
    "cr": "task a {\r  step s: tool.nothing { }\r}\r",
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_documents_are_answered(name: str) -> None:
    text = STRANGE[name]

    async def talk(client: Client) -> None:
        uri = client.open(text)
        ends = [len(line) for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
        for item in await client.diagnostics(uri, 1):
            for place in (item.range.start, item.range.end):
                assert 0 <= place.line < len(ends)
                assert 0 <= place.character <= 2 * ends[place.line]
        place = types.Position(len(ends) - 1, ends[-1])
        found = await client.text_document_completion_async(types.CompletionParams(document(uri), place))
        assert isinstance(found, types.CompletionList)
        await client.text_document_hover_async(types.HoverParams(document(uri), place))
        await client.text_document_document_symbol_async(types.DocumentSymbolParams(document(uri)))
        await client.text_document_folding_range_async(types.FoldingRangeParams(document(uri)))
        await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document(uri)))

    session(talk)


@pytest.mark.parametrize("size", [256 * 1024 + 1, 8 << 20])
def test_a_document_over_the_limit_has_one_diagnostic(size: int) -> None:
    async def talk(client: Client) -> None:
        text = "// line\n" * (size // 8 + 1)
        uri = client.open(text)
        (found,) = await client.diagnostics(uri, 1)
        assert found.code == "lang.too_large"
        first = types.Range(types.Position(0, 0), types.Position(text.count("\n"), 0))
        client.edit(uri, 2, types.TextDocumentContentChangePartial(first, "task a { }"))
        assert "lang.too_large" not in {item.code for item in await client.diagnostics(uri, 2)}

    session(talk)


def test_only_the_newest_of_rapid_changes_is_analysed() -> None:
    async def talk(client: Client) -> None:
        text = "task a { step s: tool.run { cmd: "
        uri = client.open(text)
        await client.diagnostics(uri, 1)
        for version, letter in enumerate('"pytest" } }', start=2):
            end = types.Position(0, len(text))
            client.edit(uri, version, types.TextDocumentContentChangePartial(types.Range(end, end), letter))
            text += letter
        assert await client.diagnostics(uri, version) == []
        assert len(client.published) < 6
        found = await client.text_document_hover_async(types.HoverParams(document(uri), at(text, "cmd")))
        assert found is not None

    session(talk)


def test_typing_without_a_pause_still_gets_diagnostics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsp_server, "SETTLE_S", 30.0)  # the child is forked from here

    async def talk(client: Client) -> None:
        uri = client.open("task a {")
        client.edit(uri, 2, types.TextDocumentContentChangeWholeDocument("task b {"))
        await client.diagnostics(uri, 2)

    session(talk)


def test_typing_beside_documents_that_import_does_not_look_at_each_at_every_key() -> None:
    server = lsp_server.make(config.catalog())
    for number in range(5):
        text = 'AGENT A LEVEL 1 { IMPORT "b.spak" START -> a TASK a { } }'
        server.documents.open(types.TextDocumentItem(f"file:///nowhere/{number}.spak", "spak", 1, text))
    assert server.documents.importing("") == []  # not looked at yet: there is nothing to do again
    first = server.documents.get("file:///nowhere/0.spak")
    assert first is not None
    assert first.view.diagnostics
    assert server.documents.importing("") == [first]
    first.refresh()
    assert server.documents.importing("") == []


def test_a_request_sees_the_text_of_the_last_change() -> None:
    async def talk(client: Client) -> None:
        uri = client.open("")
        text = "AGENT A LEVEL 1 { START -> one TASK one { } }"
        client.edit(uri, 2, types.TextDocumentContentChangeWholeDocument(text))
        params = types.CompletionParams(document(uri), at(text, "one TASK"))
        found = await client.text_document_completion_async(params)
        assert isinstance(found, types.CompletionList)
        assert [item.label for item in found.items] == ["one"]

    session(talk)


def test_a_closed_document_has_no_diagnostics_left() -> None:
    async def talk(client: Client) -> None:
        uri = client.open("task a {")
        assert await client.diagnostics(uri, 1)
        client.edit(uri, 2, types.TextDocumentContentChangeWholeDocument("task a { ["))
        client.text_document_did_close(types.DidCloseTextDocumentParams(document(uri)))
        await asyncio.sleep(0.1)
        await client.text_document_hover_async(types.HoverParams(document(uri), types.Position(0, 0)))
        assert [item.version for item in client.published] in ([1, None], [1, 2, None])
        assert client.published[-1].diagnostics in ([], ())

    session(talk)


# ---- leaving -------------------------------------------------------------------------------------------


def test_the_server_ends_when_the_clients_process_does() -> None:
    """The pipe stays open in this process: only the process id tells."""
    client = start_child(["sleep", "600"])
    to_server, from_server = os.pipe(), os.pipe()
    with TemporaryFile() as errors_file:
        child = start(to_server[0], from_server[1], errors_file)
        params = {"capabilities": {}, "processId": client.pid, "rootUri": None}
        os.write(to_server[1], request(1, "initialize", params))
        assert os.read(from_server[0], 100).startswith(b"Content-Length")
        client.kill()
        client.wait()
        assert finish(child) == 1
    for descriptor in (*to_server, *from_server):
        os.close(descriptor)


def test_a_client_that_reads_no_more_ends_the_server() -> None:
    to_server, from_server = os.pipe(), os.pipe()
    with TemporaryFile() as errors_file:
        child = start(to_server[0], from_server[1], errors_file)
        os.close(from_server[0])
        os.close(from_server[1])
        os.write(to_server[1], INITIALIZE)
        assert finish(child) == 1
        errors_file.seek(0)
        assert errors_file.read() == b""
    os.close(to_server[0])
    os.close(to_server[1])


def test_interrupt_ends_the_server_at_once() -> None:
    server = start_child(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(INITIALIZE)
    server.stdin.flush()
    assert server.stdout.readline().startswith(b"Content-Length")
    server.send_signal(signal.SIGINT)
    _, err = server.communicate(timeout=WAIT_S)
    assert server.returncode == 6
    assert b"Traceback" not in err


def test_an_editors_way_to_start_it_works() -> None:
    """As an editor does it, by pygls' own means: a new process, nothing forked."""

    async def talk() -> int | None:
        client = Client()
        await client.start_io(*SERVER, "--stdio")
        answer = await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
        assert answer.server_info is not None
        assert answer.server_info.name == "spak"
        uri = client.open("task a {")
        assert await client.diagnostics(uri, 1)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
        assert client._server is not None
        return client._server.returncode

    assert asyncio.run(asyncio.wait_for(talk(), WAIT_S)) == 0
