"""CpuProfiler on softmax kernels that hide what is wrong with them, and on honest ones of many styles.

The table is `bench/cheating_kernels.py`, which `python -m bench problems` counts as well. What a kernel does
to the measurement itself is in test_hack_table.py and test_cpu_hacks.py.
"""

from __future__ import annotations

import pytest

from bench import cheating_kernels
from bench.cheating_kernels import HONEST, NO_GAIN, WRONG, Court

pytestmark = [pytest.mark.sandbox, pytest.mark.findings("b18", "E4", "E5", "E6", "E7")]


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Court:
    place = tmp_path_factory.mktemp("court")
    place.chmod(0o755)
    return Court(place)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_found(court: Court, name: str) -> None:
    assert court.ending(name) in WRONG[name][0].split()


@pytest.mark.parametrize("name", [*NO_GAIN, *HONEST])
def test_a_right_kernel_passes_and_gains_nothing(court: Court, name: str) -> None:
    assert court.ending(name) == "measured"


def test_the_bench_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each kind, and one that ends otherwise than the table says."""
    few = ({"writes_x": WRONG["writes_x"], "writes_nothing": ("died", "")}, dict(list(NO_GAIN.items())[:1]))
    for name, rows in zip(("WRONG", "NO_GAIN", "HONEST"), (*few, {"naive": HONEST["naive"]}), strict=True):
        monkeypatch.setattr(cheating_kernels, name, rows)
    found = {row["name"]: (row["ours"], row["floor"]) for row in cheating_kernels.rows()}
    assert list(found.values()) == [(2, 3), (1, 1)]
    assert "writes_nothing" in next(iter(found))
