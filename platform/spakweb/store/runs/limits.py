"""What a run may use up, as its page shows it: the budgets of its spec, and what may be added to them.

Takes a run; gives numbers. Extensions are granted by the kernel (spak.kernel.budget.extend), not here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from spak.lang import parse
from spak.lang.check import examine
from spak.program.model import Budgets
from spakweb.store.runs.models import Run
from spakweb.store.runs.spec_text import spec_text
from spakweb.store.specs.facts import catalog


def budgets(run: Run) -> dict[str, int]:
    """What the spec allows, 0 for no limit; the defaults where it says nothing. Cost is in billionths."""
    default = Budgets()
    given = (run.version.facts if run.version else {"budgets": _budget(spec_text(run))}).get("budgets") or {}

    def number(name: str, usual: int) -> int:
        text = str(given.get(name, ""))
        return int(text) if text.isdigit() else usual

    limits = {
        "steps": number("steps", default.steps),
        "tokens": number("tokens", default.tokens),
        "elapsed_ms": number("elapsed_s", default.elapsed_ms // 1000) * 1000,
        "cost": number("cost", default.cost) * 1000,
    }
    more = (((run.summary or {}).get("registers") or {}).get("R7") or {}).get("extended") or {}
    for name, by in more.items():
        limits[name] += by * 1000 if name == "cost" else by
    return limits


def extensions(run: Run) -> dict[str, Any]:
    """Which budgets of a run under way may be extended, and why the last request was refused; none where its
    spec allows no extension."""
    given = (run.version.facts if run.version else {"budgets": _budget(spec_text(run))}).get("budgets") or {}
    percent = str(given.get("extend_percent", ""))
    if run.ended or run.trial or not percent.isdigit() or not int(percent):
        return {}
    asked = run.commands.filter(kind="extend").last()
    limited = [name for name, most in budgets(run).items() if most]
    waits = asked is not None and asked.done_at is None
    return {"budgets": limited, "waits": waits, "refused": asked.outcome if asked is not None else ""}


@lru_cache(maxsize=32)
def _budget(text: str) -> dict[str, Any]:
    return dict(examine(parse(text).spec, catalog()).budget) if text else {}
