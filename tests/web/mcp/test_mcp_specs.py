"""`/mcp` by the SDK's own client: specs as tools, runs as resources, questions asked at the client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.core.cache import cache
from django.test import Client as Browser
from mcp.client.streamable_http import streamable_http_client

from mcp import Client, MCPError, types
from runs_kit import looped, tables
from spakweb.asgi import application
from spakweb.face.api import limits
from spakweb.face.mcp import tools
from spakweb.store.runs.models import Command, Run
from spakweb.work.runs import actions
from spakweb.work.sources import leaving
from spakweb.work.specs.actions import archive, create_spec
from spakweb.work.teams import tokens
from spakweb.work.worker import execute, queue
from token_kit import program

pytestmark = [pytest.mark.sandbox, pytest.mark.django_db(transaction=True)]

HELLO = """\
EXPORT mcp
INPUTS { who: string = "you", times: int, loud: bool = false, size: enum("s", "l") = "s" }
task Hello {
  GOAL "Greet somebody."
  step greet: tool.write_file { path: "hello.txt" content: "Hi {{input.who}} {{input.times}} {{input.loud}}" }
  step copy: tool.write_file { path: "copy.txt" content: "as a value of a secret" }
  success: file_contains("hello.txt", "Hi")
}
"""
ASKING = """\
EXPORT mcp
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""
RUNS = """\
AGENT Runs LEVEL 4 {
  EXPORT mcp
  CONFIG { APPROVALS ask, MODE full_auto }
  START -> go
  TASK go {
    step one: tool.run { cmd: "touch made" }
  }
}
"""
EVERY = ("start", "answer", "edit", "review", "admin")
RULES = "forbidden(A) :- tool(A, /run), !approved(A).\n"


@pytest.fixture
def ground(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ThreadPoolExecutor]:
    """Tables, and a worker that advances a run as soon as it is queued."""
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    cache.clear()
    with ThreadPoolExecutor(1) as worker, tables():
        monkeypatch.setattr(queue, "send", lambda key, name="default": worker.submit(execute.advance, key))
        yield worker
        worker.submit(lambda: None).result()


@pytest.fixture
def spec(ground: Any, cast: Any) -> Callable[..., Any]:
    def make(name: str, text: str) -> Any:
        return create_spec(cast["alice"], cast.team, name, text)

    return make


def secret_of(cast: Any, who: str = "bob", scopes: tuple[str, ...] = ("start",), specs: Any = ()) -> str:
    return tokens.make(cast[who], "agent", 7, cast.team, list(scopes), specs)[1]


@asynccontextmanager
async def client(secret: str, **more: Any) -> AsyncIterator[Client]:
    """The SDK's client, at the whole application of the platform."""
    over = httpx2.ASGITransport(app=application)
    headers = {"authorization": f"Bearer {secret}"}
    async with httpx2.AsyncClient(transport=over, headers=headers, timeout=60) as http:
        transport = streamable_http_client("http://testserver/mcp", http_client=http)
        async with Client(transport, **more) as made:
            yield made


def told(result: Any) -> str:
    return str(result.content[0].text)


def call(secret: str, name: str, args: dict[str, Any], **more: Any) -> Any:
    async def work() -> Any:
        async with client(secret, **more) as found:
            return await found.call_tool(name, args)

    return looped(work)


def test_a_spec_is_a_tool_and_its_run_a_resource(
    cast: Any, spec: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "hides", lambda run: lambda path, data: b"value of a secret" in data)
    made, _ = spec("Greeter", HELLO), spec("Other", HELLO.replace("EXPORT mcp\n", ""))

    async def work() -> None:
        async with client(secret_of_bob) as found:
            listed = {tool.name: tool for tool in (await found.list_tools()).tools}
            name = f"spak__{cast.team.slug}__greeter"
            assert [*listed] == [name, "run_status", "run_answer", "run_cancel"]
            tool = listed[name]
            assert tool.description.startswith("Greet somebody. Starts a run of")
            assert made.head.content_hash[:12] in tool.description
            assert tool.input_schema == {
                "type": "object",
                "properties": {
                    "who": {"type": "string", "default": "you"}, "times": {"type": "integer"},
                    "loud": {"type": "boolean", "default": False},
                    "size": {"enum": ["s", "l"], "default": "s"},
                },
                "required": ["times"], "additionalProperties": False,
            }  # fmt: skip
            done = await found.call_tool(name, {"times": 3, "loud": True})
            assert not done.is_error, told(done)
            about = done.meta["spak"]
            assert (about["state"], about["waiting"]) == ("succeeded", False)
            assert done.structured_content is None, "agents show it in the place of the text"
            run = await Run.objects.aget()
            assert (about["run"], about["head"]) == (run.key, run.head)
            assert f"/t/{cast.team.slug}/runs/{run.key}/" in told(done)
            for args in ({}, {"times": "x"}, {"times": 1, "more": 1}, {"times": 1, "size": "m"}):
                wrong = await found.call_tool(name, args)
                assert wrong.is_error and "web.run_input" in told(wrong), args
            (one,) = (await found.list_resources()).resources
            assert str(one.uri) == f"spak://runs/{run.key}" and one.meta["spak"]["head"] == about["head"]
            forms = [one.uri_template for one in (await found.list_resource_templates()).resource_templates]
            assert [form.rpartition("/")[0] for form in forms] == [
                "spak://runs", "spak://runs/{run}/ledger", "spak://runs/{run}/files",
            ]  # fmt: skip
            with pytest.raises(MCPError, match="not found"):
                await found.read_resource(f"{one.uri}/files/copy.txt")
            read = (await found.read_resource(f"{one.uri}/files/hello.txt")).contents[0]
            assert (read.text, read.meta["spak"]["head"]) == ("Hi you 3 true", about["head"])
            lines = (await found.read_resource(f"{one.uri}/ledger/1")).contents[0].text.splitlines()
            assert [json.loads(line)["seq"] for line in lines] == list(range(1, about["records"]))
            whole = json.loads((await found.read_resource(str(one.uri))).contents[0].text)
            assert whole["spec_hash"] == made.head.content_hash
            for wrong in (
                "spak://[",
                "spak://runs/nothing",
                f"{one.uri}/files/no",
                f"{one.uri}/ledger/x",
                "spak://x/y",
            ):
                with pytest.raises(MCPError, match="not found"):
                    await found.read_resource(wrong)

    secret_of_bob = secret_of(cast)
    looped(work)
    shown = cast.client("vera").get(f"/t/{cast.team.slug}/specs/greeter/").content.decode()
    assert f"spak__{cast.team.slug}__greeter" in shown
    run = Run.objects.get()
    assert (run.made_by, run.version, run.inputs) == (cast["bob"], made.head, {"times": "3", "loud": "true"})


def test_who_may_start_no_run_has_no_tools(cast: Any, spec: Callable[..., Any]) -> None:
    made = spec("Greeter", HELLO)

    def names(secret: str) -> list[str]:
        async def work() -> list[str]:
            async with client(secret) as found:
                return [tool.name for tool in (await found.list_tools()).tools]

        return list(looped(work))

    tool = f"spak__{cast.team.slug}__greeter"
    assert tool in names(secret_of(cast)) and tool in names(secret_of(cast, specs=["greeter"]))
    assert names(secret_of(cast, specs=["small"])) == [], "a token of another spec"
    assert names(secret_of(cast, scopes=())) == [], "a token that only looks"
    assert names(secret_of(cast, "vera")) == [], "a viewer"
    assert names(tokens.make(cast["charlie"], "x", 7, cast.other_team, ["start"])[1]) == [], "a stranger"
    refused = call(secret_of(cast, "vera"), tool, {"times": 1})
    assert refused.is_error and "web.mcp_tool" in told(refused)
    actions.start(cast["alice"], cast.spec)
    other = call(secret_of(cast), "run_status", {"run": Run.objects.get().key})
    assert other.is_error and "web.404" in told(other), "the run of a spec that is not exported"
    archive(cast["alice"], made)
    assert names(secret_of(cast)) == []


def test_a_long_run_is_answered_with_a_handle(
    cast: Any, spec: Callable[..., Any], ground: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec("Greeter", HELLO)
    monkeypatch.setattr(tools, "WAIT_S", 0)
    monkeypatch.setattr(queue, "send", lambda key, name="default": None)
    secret = secret_of(cast)
    waiting = call(secret, f"spak__{cast.team.slug}__greeter", {"times": 1})
    key = waiting.meta["spak"]["run"]
    assert not waiting.is_error and waiting.meta["spak"]["waiting"] is True
    assert f"waiting: call run_status for {key}" in told(waiting)
    monkeypatch.setattr(tools, "WAIT_S", 20)
    ground.submit(execute.advance, key)
    done = call(secret, "run_status", {"run": key})
    assert done.meta["spak"]["state"] == "succeeded" and Run.objects.count() == 1
    cancelled = call(secret, "run_cancel", {"run": key})
    assert "web." not in told(cancelled), "idempotent"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_question_is_answered_by_tool_in_any_revision(
    cast: Any, spec: Callable[..., Any], mode: str
) -> None:
    spec("Talker", ASKING)
    tool, more = f"spak__{cast.team.slug}__talker", {"mode": mode}
    waits = call(secret_of(cast), tool, {}, **more)
    key = waits.meta["spak"]["run"]
    assert "waiting for an answer: Say a word." in told(waits), told(waits)
    refused = call(secret_of(cast), "run_answer", {"run": key, "text": "hi"}, **more)
    assert refused.is_error and "scope answer" in told(refused)
    done = call(secret_of(cast, scopes=("start", "answer")), "run_answer", {"run": key, "text": "hi"}, **more)
    assert done.meta["spak"]["state"] == "succeeded", told(done)


def test_a_question_is_asked_at_the_client(cast: Any, spec: Callable[..., Any]) -> None:
    spec("Talker", ASKING)
    asked: list[Any] = []

    async def answers(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content={"answer": "hello"})

    secret = secret_of(cast, scopes=("start", "answer"))
    tool = f"spak__{cast.team.slug}__talker"
    done = call(secret, tool, {}, elicitation_callback=answers)
    assert [(one.mode, one.message) for one in asked] == [("form", "Say a word.")]
    assert done.meta["spak"]["state"] == "succeeded", told(done)
    assert Run.objects.count() == 1 and Command.objects.get().body["text"] == "hello"

    async def declines(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    left = call(secret, tool, {}, elicitation_callback=declines)
    assert left.meta["spak"]["waiting"] is True and "run_answer" in told(left)
    alone = call(secret_of(cast), tool, {}, elicitation_callback=answers)
    assert "waiting for an answer" in told(alone) and len(asked) == 1, "a token that may not answer"


def test_an_approval_is_a_page_and_nothing_else(cast: Any, spec: Callable[..., Any]) -> None:
    cast.team.rules = RULES
    cast.team.save(update_fields=["rules"])
    spec("Runs", RUNS)
    asked: list[Any] = []

    def approve(where: str) -> int:
        form = {"of": Run.objects.get(ended_at=None).summary["waiting"]["id"], "decision": "approve"}
        return int(
            cast.client("rita").post(f"{where.removeprefix('http://testserver')}decide/", form).status_code
        )

    async def looks(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params)
        assert await sync_to_async(approve)(params.url) == 302
        return types.ElicitResult(action="accept")

    secret, tool = secret_of(cast, "alice", EVERY), f"spak__{cast.team.slug}__runs"
    plain = call(secret, tool, {})
    assert not plain.is_error, told(plain)
    key = plain.meta["spak"]["run"]
    assert "a reviewer approves on that page" in told(plain), told(plain)
    wrong = call(secret, "run_answer", {"run": key, "text": "approve"})
    assert wrong.is_error and "web.run_approval" in told(wrong), "no token approves"
    call(secret, "run_cancel", {"run": key})
    done = call(secret, tool, {}, elicitation_callback=looks)
    assert done.meta["spak"]["state"] == "succeeded", told(done)
    assert [one.mode for one in asked] == ["url"] and asked[0].url.endswith(
        f"/runs/{Run.objects.first().key}/"
    )
    assert [one.by for one in Command.objects.filter(kind="approve")] == [cast["rita"]]


def test_a_state_counts_for_its_call_alone(cast: Any, spec: Callable[..., Any]) -> None:
    spec("Talker", ASKING)
    tool, scopes = f"spak__{cast.team.slug}__talker", ("start", "answer")
    able = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }

    def ask(secret: str, args: dict[str, Any], **more: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": args, "_meta": able, **more}}  # fmt: skip
        headers = {"accept": "application/json", "mcp-protocol-version": "2026-07-28",
                   "mcp-method": "tools/call", "mcp-name": tool}  # fmt: skip
        answer = program(secret).post("/mcp", body, content_type="application/json", headers=headers)
        assert answer.status_code == 200, answer.content
        return answer.json()["result"]

    secret = secret_of(cast, scopes=scopes)
    first = ask(secret, {})
    state = first["requestState"]
    assert first["resultType"] == "input_required" and Run.objects.count() == 1
    given = {"person": {"action": "accept", "content": {"answer": "hello"}}}
    for who, args, told_state in (
        (secret, {"a": 1}, state), (secret, {}, state + "x"), (secret, {}, "x"),
        (secret_of(cast, scopes=scopes), {}, state), (secret_of(cast, "alice", scopes), {}, state),
    ):  # fmt: skip
        found = ask(who, args, inputResponses=given, requestState=told_state)
        assert found["isError"] and "web.mcp_state" in found["content"][0]["text"], found
    for odd in ({"person": {"action": "accept", "content": {"answer": 7}}}, {}, {"other": given["person"]}):
        found = ask(secret, {}, inputResponses=odd, requestState=state)
        assert Run.objects.count() == 1 and not Command.objects.exists(), found
    for _ in range(2):
        found = ask(secret, {}, inputResponses=given, requestState=state)
        assert not found["isError"], found
        assert found["_meta"]["spak"]["state"] in ("succeeded", "running"), found
    assert Command.objects.count() == 1, "the same answer again is that one"


def post(secret: str, body: Any, method: str = "post", **headers: str) -> Any:
    text = body if isinstance(body, (str, bytes)) else json.dumps(body)
    usual = {"accept": "application/json", "mcp-protocol-version": "2025-11-25"}
    client = program(secret, **usual, **headers) if secret else Browser()
    return getattr(client, method)("/mcp", text, content_type="application/json")


def test_what_is_no_message_of_a_token_is_refused(
    cast: Any, ground: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    secret = secret_of(cast)
    assert post(secret, ping).json()["result"] == {}
    nobody = post("", ping)
    assert (nobody.status_code, nobody.json()["code"]) == (401, "web.signed_out")
    assert "Bearer" in nobody["WWW-Authenticate"]
    page = cast.client("alice").post("/mcp", ping, content_type="application/json")
    assert page.status_code == 401, "a session counts for nothing"
    assert post("spak_" + "a" * 49, ping).status_code == 401
    foreign = post(secret, ping, origin="https://evil.example")
    assert (foreign.status_code, foreign.json()["code"]) == (403, "web.mcp_origin")
    assert post(secret, ping, origin="null").status_code == 403
    assert post(secret, ping, origin="http://testserver").status_code == 200
    settings.ALLOWED_HOSTS = ["spak.example"]
    assert post(secret, ping, host="evil.example").status_code == 400
    settings.ALLOWED_HOSTS = ["*"]
    for method in ("get", "delete", "put"):
        assert post(secret, "", method).status_code == 405, method
    assert post(secret, b"x" * (1 << 20) + b"x").status_code == 413
    assert post(secret, "").status_code == 400
    for odd in (
        "[",
        "[]",
        "7",
        "null",
        "{}",
        json.dumps([ping]),
        '{"jsonrpc": "2.0", "id": 1}',
        "[" * 5000,
    ):
        answer = post(secret, odd)
        assert answer.status_code == 400 and "error" in answer.json(), (odd, answer.content)
    assert post(secret, {**ping, "method": "sampling/createMessage"}).json()["error"]
    monkeypatch.setattr(limits, "READS_PER_MINUTE", 1)
    cache.clear()
    assert [post(secret, ping).status_code for _ in range(2)] == [200, 429]
    late = post(secret, ping)
    assert late["Retry-After"] and late.json()["code"] == "web.rate"
