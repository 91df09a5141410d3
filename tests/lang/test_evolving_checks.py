"""What `spak check` says of PROPOSER evolve: its tool, its start, and the marked blocks of its source."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spak import config
from spak.lang import parse
from spak.lang.check import examine
from spak.lang.checks.evolving import check_blocks
from spak.lang.imports import Unreadable

SPEC = """
AGENT E LEVEL 5 {
  CONFIG { BUDGET { steps: 90 } }
  START -> base
  TASK base {
    VALIDATOR Metric { cmd: "python3 m.py" source: "old.py" metric: "s" BASE }
    NEXT { success -> tune }
  }
  TASK tune {
    TOOLS [TOOL]
    PROPOSER evolve { path: "new.py" MORE }
    VALIDATOR Metric { cmd: "python3 m.py" source: "new.py" metric: "s" }
    RETRIES 3
    NEXT { metric_improved -> tune, success -> tune, fail -> tune, plateau -> done }
  }
  TASK done { step r: tool.read_file { path: "new.py" } }
}
"""
GOOD = "# SPAK-EVOLVE-BEGIN f\nx = 1\n# SPAK-EVOLVE-END\n"


FILES = {"old.py": GOOD.encode()}


def checked(
    read: Callable[[str], bytes | None] = FILES.get,
    tool: str = "write_file", base: str = 'role: "baseline"', more: str = "",
) -> list[tuple[str, int]]:  # fmt: skip
    text = SPEC.replace("BASE", base).replace("TOOL]", f"{tool}]").replace("MORE", more)
    made = examine(parse(text).spec, config.catalog())
    check_blocks(made, read)
    return [(item.code, item.line) for item in made.report.found if item.severity == "error"]


@pytest.mark.parametrize("base", ['role: "baseline"', ""])
def test_a_right_spec_has_no_error(base: str) -> None:
    assert checked(base=base) == []
    assert checked({}.get, base=base) == [], "the run may make the file"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1\n", "blocks.missing"),
        (GOOD.replace("x = 1", GOOD.strip()), "blocks.nested"),
        (GOOD + GOOD, "blocks.twice"),
        (GOOD.replace("x = 1\n", ""), "blocks.empty"),
        (GOOD.replace("-END", "-ENDE"), "blocks.marker"),
        (GOOD.replace("# SPAK-EVOLVE-END\n", ""), "blocks.open"),
        (GOOD + "\0", "blocks.text"),
    ],
)
def test_bad_markers_are_errors_at_the_source(text: str, code: str) -> None:
    assert checked({"old.py": text.encode()}.get) == [(code, 6)]
    assert checked({"old.py": text.encode()}.get, base="") == [(code, 6)]


def test_a_source_that_is_no_text_or_not_given_is_an_error() -> None:
    def refuse(path: str) -> bytes | None:
        raise Unreadable("is not a file")

    assert checked({"old.py": b"\xff\xfe"}.get) == [("blocks.text", 6)]
    assert checked(refuse) == [("blocks.text", 6)]


def test_its_tool_has_to_be_among_tools() -> None:
    assert checked(tool="read_file") == [("lang.evolve_tool", 11)]


def test_something_has_to_be_measured_before() -> None:
    text = SPEC[: SPEC.index("  TASK base")].replace("-> base", "-> tune") + SPEC[SPEC.index("  TASK tune") :]
    text = text.replace("TOOL]", "write_file]").replace("MORE", "")
    found = examine(parse(text).spec, config.catalog()).report.found
    assert [item.code for item in found if item.severity == "error"] == ["lang.evolve_start"]


def test_options_are_held_to_their_schema() -> None:
    assert checked(more="islands: 99") == [("lang.argument", 11)]
    assert checked(more='tool: "run"') == [("lang.argument", 11)]


def test_files_are_read_only_where_something_evolves() -> None:
    text = (
        SPEC.replace('PROPOSER evolve { path: "new.py" MORE }', "")
        .replace("TOOL]", "write_file]")
        .replace("BASE", "")
    )
    made = examine(parse(text).spec, config.catalog())
    check_blocks(made, lambda path: pytest.fail(f"{path} was read"))
