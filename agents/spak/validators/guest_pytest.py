"""Runs inside the sandbox: pytest with a reporter of our own. Sent as text to `python -I -B -c`; stdlib only.

Standard input holds a nonce, read before any code of the workspace can run, and after it a list of files
and of tests (`file::class::test`) that are left out, JSON. When the session is over, one line `<nonce>
<JSON>` goes to a private copy of standard output. A process that ends before that (os._exit, a crash, a
killed interpreter) leaves no such line, and that is what the validator looks for.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

LIMIT = 2000
"""Failing tests told one by one; further ones are only counted."""


class Reporter:
    """Counts outcomes by test id, from the reports that pytest itself makes."""

    def __init__(self, left: list[str]) -> None:
        self.left = frozenset(left)
        self.collected: list[str] = []
        self.deselected = 0
        self.outcomes: dict[str, str] = {}
        self.details: dict[str, dict[str, Any]] = {}
        self.collect_errors: dict[str, dict[str, Any]] = {}

    def pytest_collectreport(self, report: Any) -> None:
        """Keep what went wrong in collecting."""
        if report.failed:
            self.collect_errors[report.nodeid] = _detail(report)

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Leave out what need not run, unless that is all there is."""
        left = [item for item in items if not self.left.isdisjoint(_names(item))] if self.left else []
        if 0 < len(left) < len(items):
            items[:] = [item for item in items if item not in set(left)]
            config.hook.pytest_deselected(items=left)

    def pytest_deselected(self, items: list[Any]) -> None:
        """Count tests that were left out."""
        self.deselected += len(items)

    def pytest_collection_finish(self, session: Any) -> None:
        """Keep the tests that will run."""
        self.collected = [item.nodeid for item in session.items]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the outcome of a test; a failure outweighs what came before."""
        before = self.outcomes.get(report.nodeid, "")
        if report.failed:
            state = "failed" if report.when == "call" else "error"
        elif report.skipped:
            state = "xfailed" if hasattr(report, "wasxfail") else "skipped"
        elif report.when == "call":
            state = "xpassed" if hasattr(report, "wasxfail") else "passed"
        else:
            return
        if before in ("failed", "error"):
            return
        self.outcomes[report.nodeid] = state
        if state in ("failed", "error"):
            self.details[report.nodeid] = _detail(report)

    def summary(self, code: int) -> dict[str, Any]:
        """The report as JSON, for whoever started this."""
        counts: dict[str, int] = {}
        for state in self.outcomes.values():
            counts[state] = counts.get(state, 0) + 1
        bad = sorted(name for name, state in self.outcomes.items() if state in ("failed", "error"))
        unfinished = sorted(set(self.collected) - set(self.outcomes))
        return {
            "exit": code,
            "collected": len(self.collected),
            "deselected": self.deselected,
            "counts": counts,
            "unfinished": unfinished[:LIMIT],
            "unfinished_count": len(unfinished),
            "bad": [{"id": n, "outcome": self.outcomes[n], **self.details[n]} for n in bad[:LIMIT]],
            "collect_errors": [
                {"id": n, **detail} for n, detail in sorted(self.collect_errors.items())[:LIMIT]
            ],
        }


def _names(item: Any) -> tuple[str, str]:
    """The file of a test, and the test in it, without parameters."""
    path = os.path.relpath(item.path)
    return path, f"{path}::{item.nodeid.partition('::')[2].partition('[')[0]}"


def _detail(report: Any) -> dict[str, Any]:
    """Where and why, as pytest's own traceback entry says it."""
    crash = getattr(getattr(report, "longrepr", None), "reprcrash", None)
    if crash is not None:
        path, line, message = str(crash.path), int(crash.lineno), str(crash.message)
    else:
        location = getattr(report, "location", None) or (report.nodeid.partition("::")[0], 0, "")
        path, line = str(location[0]), int(location[1] or 0) + 1
        message = str(getattr(report, "longreprtext", ""))[-600:]
    return {"file": path, "line": line, "message": message[:600]}


def main(arguments: list[str]) -> None:
    """Run pytest with the arguments and write the report after the nonce."""
    nonce = sys.stdin.buffer.read(64).decode("ascii")
    left = json.loads(sys.stdin.buffer.read() or b"[]")
    out = os.dup(1)
    import pytest

    sys.path.insert(0, str(Path.cwd()))
    reporter = Reporter(left)
    code = int(pytest.main(arguments, plugins=[reporter]))
    sys.stdout.flush()
    data = f"\n{nonce} {json.dumps(reporter.summary(code))}\n".encode()
    while data:
        data = data[os.write(out, data) :]
    # Threads and exit handlers that the tests left behind have no say in how this process ends.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
