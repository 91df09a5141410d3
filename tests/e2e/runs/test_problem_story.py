"""A team's own problem in the browser: upload its file, see what its check found, run a spec with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from platform_kit import Watched
from problem_kit import GOOD, changed

pytestmark = [pytest.mark.e2e, pytest.mark.sandbox, pytest.mark.timeout(300)]

CHECK_MS = 120_000
"""A check and a measurement wait for their turn on a busy machine."""
TEAM = "/t/demo-team"
KERNEL = """void scale(long n, float k, const float *x, float *y) {
  for (long i = 0; i < 4 * n; i++) y[i] = k * x[i];
}
"""
SPEC = f"""AGENT Scale LEVEL 5 {{
  CONFIG {{ BUDGET {{ steps: 20 }} }}
  START -> measure
  TASK measure {{
    step write: tool.write_file {{ path: "scale.c", content: {json.dumps(KERNEL)} }}
    step build: tool.cc {{ source: "scale.c", output: "scale.so", flags: ["-O2"] }}
    VALIDATOR CpuProfiler {{ problem: "problems/scale.py", binary: "scale.so", role: "baseline" }}
  }}
}}
"""
LOOSE = changed(('tolerance = {"abs": 1e-6, "rel": 1e-6}', 'tolerance = {"abs": 100}'))


def test_from_a_file_to_a_run_that_measures_by_it(
    person: Callable[..., Watched], begin: Callable[..., str], tmp_path: Path
) -> None:
    """The first version's tolerance takes wrong answers; the page says so, and the second one is
    written in its place."""
    alice = person()
    page = alice.page
    file = tmp_path / "scale.py"
    _upload(alice, file, LOOSE)
    expect(page.locator("main h1")).to_have_text("problems/scale.py")
    expect(page.locator("#state .pill")).to_have_text("Has errors", timeout=CHECK_MS)
    expect(page.locator("#state .rows")).to_contain_text("problem.tolerance")
    assert alice.flaws() == []

    _upload(alice, file, GOOD)
    expect(page.locator(".message.error")).to_contain_text("nothing was replaced")
    alice.forget("409")
    page.click("main a:has-text('problems/scale.py')")
    page.click("summary:has-text('Edit the text')")
    page.fill("[name=text]", GOOD)
    page.click("button:has-text('Save the text')")
    expect(page.locator("#earlier")).to_be_visible()
    expect(page.locator("#state .pill")).to_have_text("In order", timeout=CHECK_MS)
    assert alice.flaws(dark=True) == []
    alice.go(f"{TEAM}/problems/")
    expect(page.locator("main .rows li")).to_have_count(1)
    expect(page.locator("main .rows li")).to_contain_text("In order")

    begin(alice, SPEC, "full_auto")
    expect(page.locator("#run-head .pill").first).to_have_text("Succeeded", timeout=CHECK_MS)
    assert alice.flaws() == []
    assert _genesis(page)["rules"]["problems"] == {"problems/scale.py": GOOD}


def _upload(window: Watched, file: Path, text: str) -> None:
    file.write_text(text)
    window.go(f"{TEAM}/problems/")
    window.page.set_input_files("[name=file]", str(file))
    window.page.click("button:has-text('Save problem')")


def _genesis(page: Page) -> Any:
    """The body of the run's first record, from the ledger as its page gives it."""
    text = page.request.get(page.url.partition("?")[0] + "export/").text()
    return json.loads(text.splitlines()[0])["body"]
