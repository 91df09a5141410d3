"""The Metric validator: what a command measures of one file, compared with the same command on its rivals.

Takes a command that prints one JSON line; gives a Measurement: its metrics, and pairs of the deciding one
against the incumbent, the baseline or the runner-up. It names no signal and knows only the rule's direction.

    stdin of the command   {"nonce": TEXT, "seed": INTEGER, "candidate": PATH}      one line
    stdout                 {"nonce": TEXT, "metrics": {NAME: NUMBER, ...}}          one line among others

The file is handed over outside the workspace, in a folder whose name is drawn, and masked inside it: the
command finds the candidate and its rivals in the same way, and their code cannot tell which of them it is.
Both sides of a couple get the same seed, drawn after the candidate was written. `cpu_ms` and `wall_ms` are
measured by the sandbox, whatever the command prints under these names.

What that proves and what it does not: docs/validators.md, Metric.
"""

from __future__ import annotations

import json
import math
import random
import secrets
import statistics
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from spak import canon
from spak import schema_parts as parts
from spak.errors import UsageError
from spak.files.scratch import Scratch
from spak.kernel.metric.decision import DEFAULTS
from spak.lang.catalog import ValidatorEntry
from spak.ports import MIB, MeasureCall, Measurement, Outcome, Subject
from spak.validators import launch, pairs, static_checks
from spak.validators.command import arguments

MAX_FILE_BYTES = 16 * MIB
MAX_LINE_BYTES = 64 << 10
MAX_METRICS = 64
MAX_NAME = 64
OUTSIDE = ("cpu_ms", "wall_ms")
"""Metrics that the sandbox measures."""
NAME = "^[A-Za-z_][A-Za-z0-9_.]*$"
_BOUND = {"type": "number"}
_NAMES = f"1 to {MAX_NAME} printable ASCII characters are needed"

SCHEMA = parts.members(
    ["cmd", "source", "metric"],
    cmd=parts.command("The command that measures: it reads one JSON line and prints one."),
    source={"description": "The file that is measured, up to 16 MiB.", **parts.PATH},
    metric={
        "description": "Which of the printed metrics decides, or cpu_ms or wall_ms of the command.",
        "type": "string",
        "maxLength": 64,
        "pattern": NAME,
    },
    unit=parts.text("How people read the metric: s, %.", 32),
    scale=parts.whole("Values are compared as integers of 1/scale units.", 1, 1_000_000_000, 1_000_000),
    constraints={
        "description": "Bounds that every run of the candidate must keep, by metric: at_least, at_most.",
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"at_least": _BOUND, "at_most": _BOUND},
            "anyOf": [{"required": ["at_least"]}, {"required": ["at_most"]}],
        },
    },
    fixed=parts.listed("Files that must be the same for a candidate and its rivals.", parts.PATH, 64),
    samples=parts.whole("Runs a side in a pair; 1 is enough for a metric without noise.", 1, 9, 3),
    role=parts.ROLE,
    timeout_s=parts.seconds("Seconds of one run of the command; only ever shortens the run's own limit."),
    wall_s=parts.seconds("Seconds of the whole measurement; the run's limit without it.", 1),
)


class Metric:
    """The validator `Metric`."""

    entry = ValidatorEntry(
        name="Metric",
        version=1,
        summary="Runs a command that measures a file, and compares it with its rivals in pairs.",
        schema=SCHEMA,
        triggers=("success", "fail", "timeout", "metric_improved", "plateau"),
        metric="value",
        effect="costly",
    )

    def measure(self, call: MeasureCall) -> Measurement:
        began = time.monotonic()
        evaluation = _Evaluation(call, began)
        status: Literal["measured", "checked", "void", "timeout", "unavailable"] = "measured"
        try:
            with ExitStack() as stack:
                evaluation.run(stack)
        except _Failed as failed:
            status = evaluation.blame(failed)
        return evaluation.result(status, int(1000 * (time.monotonic() - began)))


class _Failed(Exception):
    """A check that failed, or an end that says nothing of the candidate (`outcome`)."""

    def __init__(self, check: str, code: str, detail: str, outcome: Outcome | None = None) -> None:
        super().__init__(f"{check}: {code}: {detail}")
        self.check, self.code, self.detail, self.outcome = check, code, detail, outcome
        self.side = ""


@dataclass(slots=True)
class _Side:
    """A file to be measured, and what was seen of it."""

    name: str
    path: Path
    values: list[int] = field(default_factory=list)
    metrics: list[Mapping[str, int | float]] = field(default_factory=list)


class _Evaluation:
    def __init__(self, call: MeasureCall, began: float) -> None:
        self.call = call
        self.options = call.options
        self.rule = {**DEFAULTS, **call.rule}
        self.deadline = began + float(self.options.get("wall_s", call.limits.wall_s))
        self.files: dict[str, bytes] = {}
        self.checks: list[dict[str, Any]] = []
        self.pairs: list[dict[str, Any]] = []
        self.sides: list[_Side] = []
        self.rounds: list[Mapping[str, pairs.Figures]] = []
        self.cpu_ms = 0
        entropy = secrets.randbits(64)
        self.evidence: dict[str, Any] = {"entropy": f"{entropy:x}"}
        self.random = random.Random(f"{call.seed}:{entropy}")
        self.argv: tuple[str, ...] = ()

    def run(self, stack: ExitStack) -> None:
        """Measure the candidate, alone or against each rival of its role. Raises: _Failed."""
        self._bounds()
        self._command()
        self.files["source"] = self._content(self.options["source"])
        self.files["fixed"] = self._fixed()
        folder = stack.enter_context(Scratch("metric"))
        folder.chmod(0o755)
        candidate = self._side(folder, "candidate", self.files["source"])
        role = self.options.get("role", "candidate")
        rivals = [name for name in pairs.RIVALS[role] if name in self.call.rivals]
        for name in rivals:
            subject = self.call.rivals[name]
            if subject.files.get("fixed") != self.files["fixed"]:
                raise _Failed(
                    "fixed", "changed", f"files that must stay as they were differ from those of {name}"
                )
            rival = self._side(folder, name, subject.files["source"])
            sampling = pairs.Sampling(
                draw=lambda: self.random.getrandbits(48),
                coin=lambda: bool(self.random.getrandbits(1)),
                late=lambda: time.monotonic() > self.deadline,
                couples=self.options.get("samples", pairs.COUPLES),
            )
            self.pairs += pairs.compare(
                sampling,
                lambda _index, seed: self._sample(candidate, seed),
                lambda _index, seed, rival=rival: self._sample(rival, seed),  # type: ignore[misc]
                name,
                self.rule,
            )
            if role == "final" and name == "baseline":
                self._settle(sampling, candidate, rival)
        if not rivals:
            for _ in range(self.options.get("samples", pairs.COUPLES)):
                self._sample(candidate, self.random.getrandbits(48))
        self.checks.append(launch.check("measured", True, detail=f"{len(candidate.values)} samples"))

    def _settle(self, sampling: pairs.Sampling[int], candidate: _Side, baseline: _Side) -> None:
        """Both sides taken again while their values spread (spak.validators.pairs). Raises: _Failed."""
        sides = {"c": candidate, "i": baseline}

        def again() -> Mapping[str, list[int]]:
            taken: dict[str, list[int]] = {"candidate": [], "baseline": []}
            for _ in range(pairs.PROCESSES):
                for letter, seed in pairs.Draw.of(sampling).windows:
                    taken[sides[letter].name].append(self._sample(sides[letter], seed))
            return taken

        first = {side.name: list(side.values) for side in sides.values()}
        self.rounds = pairs.settled(first, again, sampling.late)
        self.evidence["rounds"] = [
            {side: asdict(figures) for side, figures in found.items()} for found in self.rounds
        ]

    def _bounds(self) -> None:
        """Bounds from variables may cross: that is a fault of the spec, whatever the candidate does."""
        for name, bound in self.options.get("constraints", {}).items():
            low, high = bound.get("at_least", -math.inf), bound.get("at_most", math.inf)
            if low > high:
                detail = f"at_least {low:g} is above at_most {high:g}: no value keeps both"
                raise _Failed(f"constraint.{name}", "crossed", detail)

    def _command(self) -> None:
        try:
            argv = arguments(self.options["cmd"])
        except UsageError as error:
            raise _Failed("command", error.code, f"{error.message}: {error.hint}") from error
        self.argv = (launch.program(self.call, argv[0]) or argv[0], *argv[1:])

    def _content(self, name: str) -> bytes:
        try:
            data = static_checks.read(self.call.workspace, name, MAX_FILE_BYTES)
        except OSError as error:
            raise _Failed("source", "unreadable", f"{name}: {error.strerror or error}") from error
        if data is None:
            raise _Failed("source", "too_large", f"{name} has more than {MAX_FILE_BYTES} bytes")
        return data

    def _fixed(self) -> bytes:
        """The hash of each file that must not differ between two candidates."""
        hashes = {name: canon.digest(self._content(name)) for name in self.options.get("fixed", ())}
        return canon.dumps(hashes)

    def _side(self, folder: Path, name: str, data: bytes) -> _Side:
        place = folder / secrets.token_hex(8)
        place.mkdir(mode=0o755)
        file = place / PurePosixPath(self.options["source"]).name
        file.write_bytes(data)
        file.chmod(0o444)
        side = _Side(name, file)
        self.sides.append(side)
        return side

    def _sample(self, side: _Side, seed: int) -> int:
        """One run of the command on a side. Raises: _Failed, with the side's name where it is a rival."""
        try:
            found = self._run(side, seed)
            value = self._value(found)
            if side.name == "candidate":
                self._keeps(found)
        except _Failed as failed:
            failed.side = "" if side.name == "candidate" else side.name
            raise
        side.metrics.append(found)
        side.values.append(value)
        return value

    def _run(self, side: _Side, seed: int) -> Mapping[str, int | float]:
        nonce = secrets.token_hex(16)
        given = {"nonce": nonce, "seed": seed, "candidate": str(side.path)}
        left = max(0.1, self.deadline - time.monotonic())
        outcome = launch.run(
            self.call,
            self.argv,
            timeout_s=min(float(self.options.get("timeout_s", left)), left),
            env={"PYTHONDONTWRITEBYTECODE": "1"},
            stdin=canon.dumps(given) + b"\n",
            binds=(side.path.parent,),
            masked=(self.options["source"],),
            output_bytes=MIB,
            heard=self.call.heard,
        )
        self.cpu_ms += outcome.cpu_ms
        if outcome.status not in ("exited", "crash"):
            raise _Failed("ran", outcome.status, outcome.detail, outcome)
        if outcome.exit != 0:
            detail = launch.tail(outcome.stderr.data) or launch.tail(outcome.stdout.data)
            raise _Failed("exit", "exit_mismatch", f"exit {outcome.exit}: {detail}")
        return read(outcome, nonce) | {"cpu_ms": outcome.cpu_ms, "wall_ms": outcome.wall_ms}

    def _value(self, found: Mapping[str, int | float]) -> int:
        """The deciding metric as a positive integer of `1 / scale` units."""
        name = self.options["metric"]
        if name not in found:
            raise _Failed("metric", "no_metric", f"no {name} among {', '.join(sorted(found))}")
        value = round(found[name] * self._scale())
        if not 0 < value <= canon.MAX_INT:
            raise _Failed("metric", "not_positive", f"{name} = {found[name]:g}: a positive number is needed")
        return value

    def _scale(self) -> int:
        """What a value is multiplied by to be compared as an integer."""
        return 1 if self.options["metric"] in OUTSIDE else int(self.options.get("scale", 1_000_000))

    def _keeps(self, found: Mapping[str, int | float]) -> None:
        for name, bound in self.options.get("constraints", {}).items():
            if name not in found:
                raise _Failed(f"constraint.{name}", "no_metric", f"the command gave no {name}")
            low, high = bound.get("at_least", -math.inf), bound.get("at_most", math.inf)
            if not low <= found[name] <= high:
                wanted = f"at least {low:g}" if found[name] < low else f"at most {high:g}"
                raise _Failed(
                    f"constraint.{name}", "constraint", f"{name} = {found[name]:g}, {wanted} is needed"
                )

    def blame(self, failed: _Failed) -> Literal["checked", "void", "timeout", "unavailable"]:
        """Write the failed check down; what a rival did makes the measurement worthless."""
        if failed.outcome is not None and not failed.side:
            made = launch.cut_short(failed.outcome)
            assert made is not None
            self.checks += [dict(check) for check in made.checks]
            return made.status  # type: ignore[return-value]
        name = f"rival.{failed.side}" if failed.side else failed.check
        self.checks.append(launch.check(name, False, failed.code, failed.detail))
        return "void" if failed.side else "checked"

    def result(
        self, status: Literal["measured", "checked", "void", "timeout", "unavailable"], wall_ms: int
    ) -> Measurement:
        metrics: dict[str, int | float] = {}
        if self.sides and self.sides[0].values:
            candidate, *rivals = self.sides
            metrics = {
                name: statistics.median_low([seen[name] for seen in candidate.metrics if name in seen])
                for name in candidate.metrics[-1]
            }
            settled = self.rounds[-1] if self.rounds else {}
            of = settled.get("candidate") or pairs.Figures.of(candidate.values)
            metrics |= {"value": of.median, "value_low": of.low, "value_high": of.high}
            metrics |= {"spread_ppm": of.spread_ppm} | ({"rounds": len(self.rounds)} if self.rounds else {})
            metrics["samples"] = len(candidate.values)
            metrics["per_unit"] = self._scale()
            for rival in rivals:
                if rival.values:
                    of = settled.get(rival.name) or pairs.Figures.of(rival.values)
                    metrics |= {
                        f"{rival.name}_value": of.median,
                        f"{rival.name}_value_low": of.low,
                        f"{rival.name}_value_high": of.high,
                    }
        samples = {}
        if not self.pairs:
            samples = {side.name: tuple(side.values) for side in self.sides if side.values}
        self.evidence["unit"] = self.options.get("unit", "ms" if self.options["metric"] in OUTSIDE else "")
        return Measurement(
            status,
            checks=tuple(self.checks),
            metrics=metrics,
            pairs=tuple(self.pairs) if status == "measured" else (),
            samples=samples,
            subject=Subject(self.files),
            evidence=self.evidence,
            wall_ms=wall_ms,
            cpu_ms=self.cpu_ms,
        )


def read(outcome: Outcome, nonce: str) -> dict[str, int | float]:
    """The metrics of the one line that carries the nonce. Raises: _Failed with the code of what is wrong."""
    lines = [line for line in outcome.stdout.data.split(b"\n") if nonce.encode() in line]
    if not lines:
        cut = "; its output was cut" if outcome.stdout.truncated else ""
        raise _Failed(
            "metric", "no_line", f'the command printed no line {{"nonce": ..., "metrics": {{...}}}}{cut}'
        )
    if len(lines) > 1:
        raise _Failed("metric", "two_lines", f"{len(lines)} lines carry the nonce; one is needed")
    if len(lines[0]) > MAX_LINE_BYTES:
        raise _Failed("metric", "too_large", f"the line has more than {MAX_LINE_BYTES} bytes")
    try:
        document = json.loads(lines[0], parse_constant=_not_finite, object_pairs_hook=_once)
    except _Failed:
        raise
    except (ValueError, RecursionError) as error:
        raise _Failed("metric", "not_json", f"the line is no JSON: {error}") from error
    metrics = document.get("metrics") if isinstance(document, dict) else None
    if not isinstance(metrics, dict) or document.get("nonce") != nonce or len(metrics) > MAX_METRICS:
        raise _Failed(
            "metric",
            "not_metrics",
            f'{{"nonce": ..., "metrics": {{NAME: NUMBER}}}} of at most {MAX_METRICS} is needed',
        )
    for name, value in metrics.items():
        if not (0 < len(name) <= MAX_NAME and name.isascii() and name.isprintable()):
            raise _Failed("metric", "not_a_name", f"{name[:MAX_NAME]!a} names no metric: {_NAMES}")
        if type(value) not in (int, float):
            raise _Failed("metric", "not_a_number", f"{name} is no number")
        if not abs(value) <= canon.MAX_INT:  # an integer may be too large for a float
            raise _not_finite(name)
    return metrics


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON whose names differ."""
    found = dict(members)
    if len(found) < len(members):
        raise _Failed("metric", "twice", "a name is there twice in the line")
    return found


def _not_finite(name: str) -> Any:
    raise _Failed("metric", "not_finite", f"{name}: a finite number of at most 2^53 is needed")
