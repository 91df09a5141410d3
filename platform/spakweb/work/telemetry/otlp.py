"""Spans to a collector, by OTLP over HTTP, with OpenTelemetry's own SDK (extra `telemetry`).

Takes a Trace and where it goes; gives how many spans were taken. Ids are those of the Trace and none of the
SDK's, so that sending again sends the same. Nothing of the SDK is set up for the process: no provider, no
processor, no thread stays behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spak import __version__
from spak.errors import RunError, UnavailableError
from spakweb.work.telemetry.spans import Span, Trace

AT_A_TIME, TIMEOUT_S = 500, 10
SCOPE = "spak"


def send(trace: Trace, endpoint: str, headers: str = "", service: str = "spak") -> int:
    """Raises: UnavailableError `telemetry.missing`; RunError `telemetry.refused`."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ImportError as error:
        raise UnavailableError(
            "telemetry.missing",
            "the worker has no OpenTelemetry to send spans with",
            "install requirements-telemetry.lock there",
        ) from error
    resource = Resource({"service.name": service, "service.version": __version__})
    exporter = OTLPSpanExporter(endpoint=endpoint, headers=_headers(headers), timeout=TIMEOUT_S)
    done = 0
    try:
        for start in range(0, len(trace.spans), AT_A_TIME):
            some = trace.spans[start : start + AT_A_TIME]
            ready = _readable(trace.id, some, resource)
            if exporter.export(ready) is not SpanExportResult.SUCCESS:
                raise RunError(
                    "telemetry.refused", "the collector does not take the spans, or cannot be reached",
                    "is SPAK_WEB_OTLP_ENDPOINT right? The collector's own log says more",
                )  # fmt: skip
            done += len(some)
    finally:
        exporter.shutdown()
    return done


def _readable(trace: int, some: Sequence[Span], resource: Any) -> list[Any]:
    """As the SDK has spans that have ended."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
    from opentelemetry.trace.status import Status, StatusCode

    scope = InstrumentationScope(SCOPE, __version__)
    flags = TraceFlags(TraceFlags.SAMPLED)
    found = []
    for span in some:
        error = {"error.type": span.error} if span.error else {}
        chat = span.attributes.get("gen_ai.operation.name") == "chat"
        found.append(
            ReadableSpan(
                name=span.name,
                context=SpanContext(trace, span.id, False, flags),
                parent=SpanContext(trace, span.parent, False, flags) if span.parent else None,
                resource=resource,
                attributes={**span.attributes, **error},
                kind=SpanKind.CLIENT if chat else SpanKind.INTERNAL,
                status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
                start_time=span.begun_ns,
                end_time=span.ended_ns,
                instrumentation_scope=scope,
            )
        )
    return found


def _headers(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
