"""Reading a run that this kernel may not replay: its state is then what its own records say of it.

`Reading` is a Replay for whoever shows a run and does not go on with it. Where another kernel made the run,
it takes place, root, counts and end from the records as they are, checks none of them and has no rules. A run
of an earlier kernel that has not ended counts as cancelled, with `ledger.semantics`: nobody goes on with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spak import program as programs
from spak.costs import cost_of
from spak.errors import LedgerError, UserError
from spak.kernel import fit, seal
from spak.kernel.replay import Replay
from spak.kernel.state import Counter, State, Watchdog, changed
from spak.lang import parse
from spak.lang.catalog import Catalog
from spak.program import Program
from spak.program.semantics import Earlier
from spak.records import Authority, Kind, Record


@dataclass(slots=True)
class Reading(Replay):
    """Feed it records; read what a Replay has, and whether it was one."""

    unreplayed: LedgerError | None = None
    """Why the records were only read; None where they were replayed."""

    def feed(self, record: Record) -> None:
        """Take the next record. Raises: LedgerError `ledger.genesis`, SpecError: genesis is not usable."""
        if self.unreplayed is not None:
            self.records += 1
            self._read(record)
            return
        try:
            Replay.feed(self, record)
        except LedgerError as error:
            if error.code != "ledger.semantics":
                raise
            self.unreplayed = error
            self._begin(record.body, error)

    def _begin(self, genesis: Mapping[str, Any], why: LedgerError) -> None:
        rules, host = genesis["rules"], genesis.get("host") or {}
        self.state = State(status="running", run=str(host.get("run", "")), r3=str(rules.get("r3", "")))
        summary = seal.opening(rules.get("kernel", rules.get("semantics")), rules)
        self._executive(summary=summary)
        if isinstance(why, Earlier):
            self._set(status="cancelled")
            self._executive(codes=(why.code,), knob=why.hint)

    def _read(self, record: Record) -> None:
        if record.authority == Authority.PROPOSAL:
            self._spend(record)
            return
        if record.authority != Authority.COMMIT:
            return
        body, content = record.body, record.content
        self._executive(summary=seal.fold(self.state.r7.summary, content), last=content)
        self._set(r0=Counter(record.task, record.step, record.attempt))
        if isinstance(root := body.get("r3"), str):
            self._set(r3=root)
        if record.kind == Kind.END:
            texts = {name: tuple(map(str, body.get(name) or ())) for name in ("codes", "evidence")}
            self._set(status=str(body.get("state")))
            self._executive(**texts, knob=str(body.get("knob", "")))

    def _spend(self, record: Record) -> None:
        dog, cost, task = self.state.r1, cost_of(record.side), record.task
        steps = dog.steps + (record.kind in (Kind.ACT, Kind.PLAN))
        elapsed = dog.elapsed_ms + fit.count(record.side, "ms")
        self._set(r1=Watchdog(elapsed, steps), r2=self.state.r2 + cost.tokens)
        if cost.answers:
            calls, tokens, paid = self.state.r7.usage.get(task, (0, 0, 0))
            used = (calls + cost.answers, tokens + cost.tokens, paid + cost.nanousd)
            self._executive(usage={**self.state.r7.usage, task: used})

    def _set(self, **registers: Any) -> None:
        self.state = changed(self.state, registers)

    def _executive(self, **changes: Any) -> None:
        self._set(r7=changed(self.state.r7, changes))


def program_of(genesis: Mapping[str, Any]) -> Program | None:
    """The program of a run, to name what its records mean; None where its spec does not compile today."""
    try:
        rules = genesis["rules"]
        return programs.compile(parse(rules["spec"]), Catalog.from_json(rules["catalog"]), rules["inputs"])
    except (UserError, KeyError, TypeError, AttributeError):
        return None
