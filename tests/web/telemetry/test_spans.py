"""Runs as spans: what they are folded from, ids that are the ledger's, and what a collector is sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs_kit import at_once, job, wanted, worked
from platform_kit import ROOT
from runs_kit import tables
from spak.errors import UnavailableError
from spak.records import Record, decode
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run
from spakweb.work.jobs import work
from spakweb.work.runs.actions import start
from spakweb.work.telemetry import jobs, otlp, spans
from spakweb.work.worker import execute, queue

GOLDEN = ROOT / "tests" / "golden" / "kernel-1"


class Collector:
    """A receiver of OTLP over HTTP, on loopback."""

    def __init__(self) -> None:
        self.status = 200
        self.spans: list[Any] = []
        self.headers: dict[str, str] = {}
        self.services: set[str] = set()
        kept = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                kept.headers = {name.lower(): value for name, value in self.headers.items()}
                if kept.status == 200:
                    kept.take(body)
                self.send_response(kept.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *ignored: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def take(self, body: bytes) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.services.add(named["service.name"])
            for scope in resource.scope_spans:
                self.spans += scope.spans


@pytest.fixture
def collector(settings: Any) -> Iterator[Collector]:
    made = Collector()
    settings.OTLP, settings.OTLP_HEADERS = made.url, "x-key=abc"
    yield made
    made.server.shutdown()
    made.server.server_close()


def records(path: Path) -> list[Record]:
    lines = [line for line in path.read_bytes().splitlines(keepends=True) if line.startswith(b'{"#"')]
    return [decode(line) for line in lines]


def model(record: Record) -> Record:
    """The same answer, of a model."""
    side = {"by": "local-7b", "tokens": 30, "usage": {"input": 20, "output": 10}, "finish": "stop",
            "cost_nanousd": 5}  # fmt: skip
    return record._replace(side=side) if record.side == {"by": "person"} else record


def test_a_run_is_a_tree_of_its_tasks_and_steps() -> None:
    found = spans.of(map(model, records(GOLDEN / "build_feature.jsonl")))
    assert found is not None
    run, *rest = found.spans
    assert (run.name, run.parent, run.error) == ("invoke_agent build_feature.spak", 0, "")
    assert run.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert run.attributes["spak.state"] == "succeeded"
    tasks = [span for span in rest if span.parent == run.id]
    assert tasks and all(span.name.startswith("task ") for span in tasks)
    steps = [span for span in rest if span.parent != run.id]
    assert {span.parent for span in steps} <= {span.id for span in tasks}
    assert all(run.begun_ns <= span.begun_ns <= span.ended_ns <= run.ended_ns for span in rest)
    chat = next(span for span in steps if span.name == "chat local-7b")
    assert chat.attributes["gen_ai.usage.input_tokens"] == 20
    assert chat.attributes["gen_ai.usage.output_tokens"] == 10
    assert chat.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert run.attributes["gen_ai.usage.input_tokens"] == 20
    tools = [span for span in steps if span.name.startswith("execute_tool ")]
    assert tools and all(span.attributes["gen_ai.tool.name"] for span in tools)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.jsonl")), ids=lambda path: path.stem)
def test_ids_are_the_ledgers(path: Path) -> None:
    """Read twice the same; each its own; and a run has the same spans while it goes on, as far as it is."""
    known = records(path)
    whole, again = spans.of(known), spans.of(iter(known))
    assert whole is not None and whole == again
    ids = [span.id for span in whole.spans]
    assert len(set(ids)) == len(ids)
    half = spans.of(known[: len(known) // 2])
    assert half is not None and half.id == whole.id
    assert [span.id for span in half.spans] == ids[: len(half.spans)]
    other = spans.of([known[0]._replace(hash="x"), *known[1:]])
    assert other is not None and not {span.id for span in other.spans} & set(ids)


def test_a_refused_run_says_why_and_nothing_that_was_written_is_in_it() -> None:
    found = spans.of(records(GOLDEN / "summarized.jsonl"))
    assert found is not None
    assert (found.spans[0].error, found.spans[0].attributes["spak.state"]) == ("budget.steps", "refused")
    said = str([(span.name, span.attributes, span.error) for span in found.spans])
    assert "let me think" not in said
    assert spans.of([]) is None


@pytest.fixture
def ended(
    transactional_db: None, cast: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    """A run that has ended."""
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    settings.DATA_DIR = tmp_path
    with tables():
        made = start(cast["bob"], cast.spec)
        execute.advance(made.key)
        made.refresh_from_db()
        assert made.ended
        yield made


def test_a_collector_gets_them_once(
    ended: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worked(jobs.SEND) == [ended.key]
    work.do(jobs.SEND, ended.key)  # the message came twice
    assert worked(jobs.SEND) == [] and job(jobs.SEND).result == {"spans": len(collector.spans)}
    trace = spans.of(record for record, _ in DatabaseLedgers().reader(ended.key).read())
    assert trace is not None
    assert [int.from_bytes(span.span_id, "big") for span in collector.spans] == [
        span.id for span in trace.spans
    ]
    assert {int.from_bytes(span.trace_id, "big") for span in collector.spans} == {trace.id}
    assert collector.spans[0].parent_span_id == b"" and collector.spans[1].parent_span_id
    assert (collector.headers["x-key"], collector.services) == ("abc", {"spak"})
    call_command("export_spans", ended.key)  # by hand: the same ids again
    sent = [span.span_id for span in collector.spans]
    assert sent[: len(sent) // 2] == sent[len(sent) // 2 :]


def test_a_collector_that_refuses_is_asked_again_later(ended: Run, collector: Collector) -> None:
    collector.status = 400
    assert worked(jobs.SEND) == [ended.key]
    row = job(jobs.SEND)
    assert (row.done_at, row.tries, row.error.split(":")[0]) == (None, 1, "telemetry.refused")
    assert worked(jobs.SEND) == [] and collector.spans == []  # not before its time
    collector.status = 200
    assert at_once(jobs.SEND) == [ended.key]
    row.refresh_from_db()
    assert (row.tries, row.error, row.wanted_at) == (0, "", None) and row.done_at is not None


def test_a_collector_that_never_takes_them_is_asked_no_more(ended: Run, collector: Collector) -> None:
    collector.status = 400
    for _ in range(len(jobs.KIND.waits) + 1):
        assert at_once(jobs.SEND) == [ended.key]
    assert at_once(jobs.SEND) == []
    assert job(jobs.SEND).error.startswith("telemetry.refused") and wanted(jobs.SEND) == []


def test_without_a_collector_nothing_is_sent(ended: Run, settings: Any) -> None:
    settings.OTLP = ""
    assert worked(jobs.SEND) == [] and wanted(jobs.SEND) == []
    with pytest.raises(CommandError, match="names no collector"):
        call_command("export_spans", ended.key)


def test_a_run_that_there_is_not(db: None, collector: Collector) -> None:
    with pytest.raises(CommandError, match="there is no run"):
        call_command("export_spans", "none")


def test_a_worker_without_the_extra_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with pytest.raises(UnavailableError) as why:
        otlp.send(spans.Trace(1, ()), "http://127.0.0.1:9/v1/traces")
    assert why.value.code == "telemetry.missing"
