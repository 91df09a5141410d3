"""A session per feature with the real process; that the answers are right, tests of `features` show."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_kit import Client, at, document, session, taken
from spak.lang.format import format_text

SNIPPETS = types.ClientCapabilities(
    text_document=types.TextDocumentClientCapabilities(
        completion=types.CompletionClientCapabilities(
            completion_item=types.ClientCompletionItemOptions(snippet_support=True)
        ),
        document_symbol=types.DocumentSymbolClientCapabilities(hierarchical_document_symbol_support=True),
        rename=types.RenameClientCapabilities(prepare_support=True),
    ),
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
    ),
)

TEXT = """AGENT Builder LEVEL 2 {
  // \U0001d54f\u0301 two units and a combining mark
  START -> build

  TASK build {
    TOOLS [run, write_file]
    step test: tool.run { cmd: "pytest" output_var: log }
    step ask: llm.query { prompt: "\U0001d54f {{log}}" }
    NEXT { success -> finalize, fail -> build }
  }
}
"""


def test_diagnostics_have_range_code_page_and_hint() -> None:
    async def talk(client: Client) -> None:
        uri = client.open(TEXT)
        (found,) = [item for item in await client.diagnostics(uri, 1) if item.severity == 1]
        assert taken(TEXT, found.range) == "finalize"
        assert found.code == "lang.unknown_task"
        assert found.source == "spak"
        assert found.message.splitlines() == [
            "there is no task 'finalize'",
            'define it: TASK finalize { GOAL "..." }',
        ]
        assert found.code_description is not None
        page, _, line = found.code_description.href.partition("#L")
        lines = Path(page.removeprefix("file://")).read_text().splitlines()
        assert lines[int(line) - 1].startswith("- `lang.unknown_task`")

    session(talk)


def test_fixes_are_actions_and_mend_the_text() -> None:
    text = TEXT.replace("build {", "buld {").replace("-> finalize", "-> bulid").replace("TOOLS", "TOLS")

    async def talk(client: Client) -> None:
        uri = client.open(text)
        await client.diagnostics(uri, 1)
        place = types.Range(at(text, "bulid"), at(text, "bulid", 5))
        params = types.CodeActionParams(document(uri), place, types.CodeActionContext([]))
        found = await client.text_document_code_action_async(params) or []
        titles = [item.title for item in found]
        assert titles == ["Replace 'bulid' by 'buld'", "Apply 4 fixes"]
        fix = found[0]
        assert isinstance(fix, types.CodeAction)
        assert fix.is_preferred
        assert fix.edit is not None
        (change,) = fix.edit.document_changes or ()
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.version == 1
        (edit,) = change.edits
        assert isinstance(edit, types.TextEdit)
        assert (taken(text, edit.range), edit.new_text) == ("bulid", "buld")
        only = types.CodeActionContext([], only=[types.CodeActionKind.Refactor])
        nothing = types.CodeActionParams(document(uri), place, only)
        assert not await client.text_document_code_action_async(nothing)

    session(talk, SNIPPETS)


def test_completion_knows_the_place() -> None:
    async def talk(client: Client) -> None:
        uri = client.open(TEXT)
        found = await client.text_document_completion_async(
            types.CompletionParams(document(uri), at(TEXT, "{{log}}", 2))
        )
        assert isinstance(found, types.CompletionList)
        item = next(item for item in found.items if item.label == "log")
        assert isinstance(item.text_edit, types.TextEdit)
        assert taken(TEXT, item.text_edit.range) == "log"
        found = await client.text_document_completion_async(
            types.CompletionParams(document(uri), at(TEXT, "  NEXT"))
        )
        assert isinstance(found, types.CompletionList)
        step = next(item for item in found.items if item.label == "step")
        assert step.insert_text_format == types.InsertTextFormat.Snippet
        assert isinstance(step.documentation, types.MarkupContent)
        assert [item.sort_text for item in found.items] == sorted(
            item.sort_text or "" for item in found.items
        )

    session(talk, SNIPPETS)


def test_a_client_without_snippets_gets_plain_text() -> None:
    async def talk(client: Client) -> None:
        uri = client.open(TEXT)
        found = await client.text_document_completion_async(
            types.CompletionParams(document(uri), at(TEXT, "  NEXT"))
        )
        assert isinstance(found, types.CompletionList)
        assert found.items
        for item in found.items:
            assert item.insert_text_format == types.InsertTextFormat.PlainText
            assert isinstance(item.text_edit, types.TextEdit)
            assert "$" not in item.text_edit.new_text

    session(talk)


def test_hover_definition_references_and_highlight() -> None:
    async def talk(client: Client) -> None:
        uri = client.open(TEXT)
        place = at(TEXT, "{{log}}", 3)
        found = await client.text_document_hover_async(types.HoverParams(document(uri), place))
        assert found is not None
        assert isinstance(found.contents, types.MarkupContent)
        assert "the output of step `test`" in found.contents.value
        assert "/docs/language.md#variables)" in found.contents.value
        assert found.range is not None
        assert taken(TEXT, found.range) == "log"
        there = await client.text_document_definition_async(types.DefinitionParams(document(uri), place))
        assert isinstance(there, list | tuple)
        (only,) = there
        assert isinstance(only, types.Location)
        assert (only.uri, only.range.start) == (uri, at(TEXT, "log }"))
        for declaration, count in ((True, 2), (False, 1)):
            context = types.ReferenceContext(declaration)
            uses = await client.text_document_references_async(
                types.ReferenceParams(context, document(uri), place)
            )
            assert [taken(TEXT, item.range) for item in uses or ()] == ["log"] * count
        marked = await client.text_document_document_highlight_async(
            types.DocumentHighlightParams(document(uri), at(TEXT, "build"))
        )
        assert len(marked or ()) == 3
        assert (
            await client.text_document_hover_async(types.HoverParams(document(uri), at(TEXT, "//"))) is None
        )

    session(talk)


def test_rename_is_prepared_done_and_refused() -> None:
    async def talk(client: Client) -> None:
        uri = client.open(TEXT)
        place = at(TEXT, "-> build", 5)
        ready = await client.text_document_prepare_rename_async(
            types.PrepareRenameParams(document(uri), place)
        )
        assert isinstance(ready, types.PrepareRenamePlaceholder)
        assert ready.placeholder == "build"
        done = await client.text_document_rename_async(types.RenameParams(document(uri), place, "make"))
        assert done is not None
        (change,) = done.document_changes or ()
        assert isinstance(change, types.TextDocumentEdit)
        assert [taken(TEXT, item.range) for item in change.edits] == ["build"] * 3
        keyword = types.PrepareRenameParams(document(uri), at(TEXT, "TOOLS"))
        assert await client.text_document_prepare_rename_async(keyword) is None
        with pytest.raises(JsonRpcException, match="is not a name"):
            await client.text_document_rename_async(types.RenameParams(document(uri), place, "a b"))

    session(talk, SNIPPETS)


def test_symbols_folds_and_colours() -> None:
    async def talk(client: Client) -> None:
        uri = client.open(TEXT)
        tree = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document(uri)))
        (agent,) = tree or ()
        assert isinstance(agent, types.DocumentSymbol)
        assert agent.name == "Builder"
        assert [item.name for item in (agent.children or ())[0].children or ()] == ["test", "ask"]
        folds = await client.text_document_folding_range_async(types.FoldingRangeParams(document(uri)))
        assert [(item.start_line, item.end_line) for item in folds or ()] == [(0, 9), (4, 8)]
        found = await client.text_document_semantic_tokens_full_async(
            types.SemanticTokensParams(document(uri))
        )
        assert found is not None
        assert client.capabilities is not None
        options = client.capabilities.semantic_tokens_provider
        assert isinstance(options, types.SemanticTokensOptions)
        assert options.full
        line = column = 0
        seen = []
        for index in range(0, len(found.data), 5):
            down, right, length, kind, _ = found.data[index : index + 5]
            line, column = line + down, (right if down else column + right)
            place = types.Range(types.Position(line, column), types.Position(line, column + length))
            seen.append((taken(TEXT, place), options.legend.token_types[kind]))
        assert ("AGENT", "keyword") in seen
        assert ("log", "variable") in seen
        assert ("// \U0001d54f\u0301 two units and a combining mark", "comment") in seen

    session(talk, SNIPPETS)


def test_symbols_are_flat_for_a_client_that_knows_no_tree() -> None:
    async def talk(client: Client) -> None:
        uri = client.open(TEXT)
        found = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document(uri)))
        names = [(item.name, getattr(item, "container_name", None)) for item in found or ()]
        assert names == [("Builder", None), ("build", "Builder"), ("test", "build"), ("ask", "build")]

    session(talk)


def test_formatting_is_the_formatter_of_the_command() -> None:
    crooked = 'task a {\r\n step s: tool.run { cmd: "x" }   }\r\n// \U0001d54f\r\n'

    async def talk(client: Client) -> None:
        options = types.FormattingOptions(tab_size=2, insert_spaces=True)
        uri = client.open(crooked)
        params = types.DocumentFormattingParams(document(uri), options)
        (edit,) = await client.text_document_formatting_async(params) or ()
        client.edit(uri, 2, types.TextDocumentContentChangePartial(edit.range, edit.new_text))
        assert await client.text_document_formatting_async(params) in ([], ())
        wanted = format_text(crooked).text
        change = types.TextDocumentContentChangeWholeDocument(wanted)
        client.edit(uri, 3, change)
        assert await client.text_document_formatting_async(params) in ([], ())
        client.edit(uri, 4, types.TextDocumentContentChangeWholeDocument("task {"))
        assert await client.text_document_formatting_async(params) is None

    session(talk)


def test_imports_are_followed_and_told_where_they_stand(tmp_path: Path) -> None:
    main = 'AGENT A LEVEL 2 {\n  IMPORT "shared.spak"\n  START -> mend\n}\n'
    shared = tmp_path / "shared.spak"
    shared.write_text("TASK mend { TOOLS [run, nothing] }\n")

    async def talk(client: Client) -> None:
        uri = client.open(main, (tmp_path / "main.spak").as_uri())
        (found,) = [item for item in await client.diagnostics(uri, 1) if item.severity == 1]
        assert found.message.startswith("shared.spak:1: unknown tool 'nothing'")
        assert taken(main, found.range) == 'IMPORT "shared.spak"'
        (related,) = found.related_information or ()
        assert related.location.uri == shared.as_uri()
        there = await client.text_document_definition_async(
            types.DefinitionParams(document(uri), at(main, "mend"))
        )
        assert isinstance(there, list | tuple)
        assert [
            (item.uri, item.range.start.character) for item in there if isinstance(item, types.Location)
        ] == [(shared.as_uri(), 5)]
        client.published.clear()
        client.open("TASK mend { TOOLS [run] }\n", shared.as_uri())  # mended in the editor, not on the disk
        assert [item for item in await client.diagnostics(uri, 1) if item.severity == 1] == []

    session(talk)


LAWFUL = """AGENT A LEVEL 1 {
  POLICY %s
  SYSTEM_MODEL M { AXIOM "forbidden(A) :- tool(A, X, Y)." }
  START -> t
  TASK t { step a: tool.read_file { path: "x" } }
}
"""


EVOLVES = """AGENT E LEVEL 5 {
  CONFIG { BUDGET { steps: 90 } }
  START -> base
  TASK base {
    VALIDATOR Metric { cmd: "python3 m.py" source: "old.py" metric: "s" role: "baseline" }
    NEXT { success -> tune }
  }
  TASK tune {
    TOOLS [write_file]
    PROPOSER evolve { path: "new.py" }
    VALIDATOR Metric { cmd: "python3 m.py" source: "new.py" metric: "s" }
    RETRIES 3
    NEXT { metric_improved -> tune, success -> tune, fail -> tune, plateau -> done }
  }
  TASK done { step r: tool.read_file { path: "new.py" } }
}
"""


def test_marked_blocks_are_checked_where_the_spec_names_their_file(tmp_path: Path) -> None:
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec/old.py").write_text("# SPAK-EVOLVE-BEGIN f\nx = 1\n")

    async def talk(client: Client) -> None:
        uri = client.open(EVOLVES, (tmp_path / "spec.spak").as_uri())
        (found,) = [item for item in await client.diagnostics(uri, 1) if item.severity == 1]
        assert (found.code, taken(EVOLVES, found.range)) == ("blocks.open", '"old.py"')
        (tmp_path / "spec/old.py").write_text("# SPAK-EVOLVE-BEGIN f\nx = 1\n# SPAK-EVOLVE-END\n")
        client.edit(uri, 2, types.TextDocumentContentChangeWholeDocument(EVOLVES + "\n"))
        assert not [item for item in await client.diagnostics(uri, 2) if item.severity == 1]
        without = client.open(EVOLVES)
        assert not [item for item in await client.diagnostics(without, 1) if item.severity == 1]

    session(talk)


def test_what_is_wrong_with_a_policy_and_a_rule_is_told(tmp_path: Path) -> None:
    written = LAWFUL % '"""\nforbidden(A) :- tool(A, /x.\n"""'
    (tmp_path / "rules.mg").write_text("# fine\nforbidden(A) :- tool(A, /x.\n")

    async def talk(client: Client) -> None:
        uri = client.open(written, (tmp_path / "a.spak").as_uri())
        places = {
            taken(written, item.range) for item in await client.diagnostics(uri, 1) if item.severity == 1
        }
        assert places == {".", "tool(A, X, Y)"}
        named = LAWFUL % '"rules.mg"'
        uri = client.open(named, (tmp_path / "b.spak").as_uri())
        (found,) = [item for item in await client.diagnostics(uri, 1) if item.related_information]
        assert taken(named, found.range) == 'POLICY "rules.mg"'
        (related,) = found.related_information or ()
        assert related.location.uri == (tmp_path / "rules.mg").as_uri()
        assert related.location.range.start.line == 1
        uri = client.open(LAWFUL % '"forbidden(A) :- tool(A, /x)."')
        assert any("tool has 2 columns" in item.message for item in await client.diagnostics(uri, 1))

    session(talk)
