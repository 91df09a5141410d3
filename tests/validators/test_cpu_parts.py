"""The parts of CpuProfiler by themselves: imports of a binary, arenas, places, reference, threads, peak."""

from __future__ import annotations

import dataclasses
import fcntl
import itertools
import mmap
import os
import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from cpu_calls import EXAMPLES, HACKS, Lab
from problem_kit import problem
from spak.lang.schema import violations
from spak.validators import cpu_symbols
from spak.validators.cpu_arena import ARENA_BYTES, Arena, places
from spak.validators.cpu_build import Workshop
from spak.validators.cpu_profiler import SCHEMA, CpuProfiler

ATTENTION = problem("attention")
ODD_KINDS = ATTENTION.kinds[1:]
MASKED_KINDS = ("first", "last", "one", "half")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("parts"))


def test_imports_are_those_that_nm_sees(lab: Lab) -> None:
    """The reader of relocations against binutils."""
    for source in (EXAMPLES / "naive.c", HACKS / "imports_system.c", HACKS / "malloc_as_zero.c"):
        path = lab.folder / lab.compiled(source)
        seen = subprocess.run(["nm", "-D", "-u", path], capture_output=True, text=True, check=True).stdout
        names = {line.split()[-1].partition("@")[0] for line in seen.splitlines()}
        assert cpu_symbols.imports(path.read_bytes()) == names
    assert cpu_symbols.forbidden((lab.folder / lab.compiled(EXAMPLES / "naive.c")).read_bytes()) == ()
    wanting = (lab.folder / lab.hack("imports_system")).read_bytes()
    assert cpu_symbols.forbidden(wanting) == (
        "getenv",
        "system",
    )


def test_imports_survive_stripped_sections(lab: Lab) -> None:
    """The loader needs no section headers, so neither may the list of imports."""
    whole = bytearray((lab.folder / lab.hack("imports_system")).read_bytes())
    whole[40:48] = bytes(8)
    whole[60:64] = bytes(4)
    assert "system" in cpu_symbols.imports(bytes(whole))


def test_a_damaged_file_is_a_value_error(lab: Lab) -> None:
    whole = (lab.folder / lab.hack("honest")).read_bytes()
    for cut in [*range(0, 400, 7), *range(400, len(whole) - 1, 997)]:
        try:
            cpu_symbols.imports(whole[:cut])
        except ValueError:
            continue
    source = np.random.default_rng(1)
    for _ in range(300):
        damaged = bytearray(whole)
        for at in source.integers(0, 1200, size=4):
            damaged[at] = source.integers(256)
        try:
            cpu_symbols.imports(bytes(damaged))
        except ValueError:
            continue


def _elf(segments: int, entries: int, relocations: int, name: int) -> bytes:
    """A file of one load segment that is as costly to read as its numbers say."""
    tables = 64 + 56 * (segments + 1)
    symbols = tables + 16 * entries
    moves = symbols + 24 * (relocations + 1)
    names = moves + 24 * relocations
    end = names + name + 1
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", head, 32, 64)
    struct.pack_into("<HH", head, 54, 56, segments + 1)
    parts = [bytes(head), struct.pack("<IIQQQQQQ", 1, 0, 0, 0, 0, end, 0, 0)]
    parts += [struct.pack("<IIQQQQQQ", 2, 0, tables, tables, 0, 16 * entries, 0, 0)] * segments
    known = ((5, names), (6, symbols), (7, moves), (8, 24 * relocations))
    parts += [struct.pack("<QQ", *(known[index] if index < 4 else (99, 0))) for index in range(entries)]
    parts += [struct.pack("<IBBHQQ", index, 0, 0, 0, 0, 0) for index in range(relocations + 1)]
    parts += [struct.pack("<QQq", 0, index + 1 << 32, 0) for index in range(relocations)]
    return b"".join((*parts, b"a" * name, b"\0"))


@pytest.mark.parametrize("size", [(60_000, 10_000, 1, 9), (1, 200_000, 1, 9), (1, 5, 3000, 4 << 20)], ids=str)
def test_a_file_made_to_cost_the_reader_is_refused_at_once(size: tuple[int, int, int, int]) -> None:
    assert len(cpu_symbols.imports(_elf(1, 5, 8, 9))) == 8
    costly = _elf(*size)
    began = time.process_time()
    with pytest.raises(ValueError):
        cpu_symbols.imports(costly)
    assert time.process_time() - began < 30


def test_places_are_disjoint_aligned_and_all_over() -> None:
    source = np.random.default_rng(2)
    sizes = [4 << 20, 256 << 10, 100]
    firsts = set()
    for _ in range(500):
        found = places(source, sizes)
        ends = sorted(zip(found, sizes, strict=True))
        assert all(at % 64 == 0 and at >= 0 for at in found)
        assert all(at + size <= after for (at, size), (after, _) in itertools.pairwise(ends))
        assert ends[-1][0] + ends[-1][1] <= ARENA_BYTES
        firsts.add(found[1])
    assert len(firsts) > 450
    assert min(firsts) < ARENA_BYTES // 8 and max(firsts) > ARENA_BYTES * 7 // 8


@pytest.mark.parametrize("count", [1, 2, 3])
def test_at_the_edges_blocks_touch_the_ends_of_the_arena(count: int) -> None:
    source = np.random.default_rng(2)
    seen = set()
    for _ in range(50):
        found = places(source, [1000] * count, edge=True)
        ends = {
            place for place in ("first", "last") if (0 if place == "first" else ARENA_BYTES - 1024) in found
        }
        assert len(ends) == min(count, 2)
        seen |= ends
    assert seen == {"first", "last"}


def test_the_inputs_cannot_be_written_by_who_holds_the_descriptor() -> None:
    arena = Arena(sealed=True)
    try:
        for flags in (os.O_RDWR, os.O_WRONLY):
            with pytest.raises(OSError, match=r"denied|permitted"):
                _write_through(f"/proc/self/fd/{arena.fd}", flags)
        with pytest.raises(OSError, match=r"permitted|Bad file|Invalid"):
            os.ftruncate(arena.fd, 0)
        arena.bytes.view(np.float32)[0] = 1.5
        assert np.frombuffer(os.pread(arena.fd, 4, 0), np.float32)[0] == 1.5
    finally:
        arena.close()


def _write_through(path: str, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        os.write(fd, b"1234")
    finally:
        os.close(fd)


def test_the_output_can_be_written_but_not_cut_off() -> None:
    arena = Arena(sealed=False)
    try:
        assert np.isnan(arena.bytes.view(np.float32)).all()
        with mmap.mmap(arena.fd, ARENA_BYTES) as view:
            view[:4] = np.float32(2.5).tobytes()
        assert arena.bytes.view(np.float32)[0] == 2.5
        with pytest.raises(PermissionError):
            os.ftruncate(arena.fd, 0)
        with pytest.raises(PermissionError):
            fcntl.fcntl(arena.fd, 1033, 0x8)
    finally:
        arena.close()


def test_the_plan_covers_sizes_and_kinds() -> None:
    plan = ATTENTION.plan(np.random.default_rng(3), 512)
    assert len(plan) == 36 + 16 + 16 + 16
    assert set(range(1, 17)) <= {size for size, _ in plan}
    sizes = [size for size, _ in plan]
    assert max(len([*row]) for size, row in itertools.groupby(sizes) if size <= 64) >= 16
    assert {1, 7, 65, 333, 511, 512, 513, 640} <= {size for size, _ in plan}
    for size in (512, 333):
        assert {kind for at, kind in plan if at == size} == {"normal", *ODD_KINDS}
    assert plan != ATTENTION.plan(np.random.default_rng(4), 512)
    assert all(1 <= size <= 1024 for size, _ in ATTENTION.plan(np.random.default_rng(5), 1024))


def test_a_problem_of_one_size_gets_no_small_ones() -> None:
    fixed = dataclasses.replace(ATTENTION, least=512, most=512)
    assert len(fixed.plan(np.random.default_rng(3), 512)) == 36
    assert {size for size, _ in fixed.sizes(np.random.default_rng(3), 50)} == {512}


def test_drawn_sizes_are_small_and_large() -> None:
    drawn = [size for size, _ in ATTENTION.sizes(np.random.default_rng(3), 2000)]
    assert min(drawn) == 1 and max(drawn) > 1000
    assert 700 < sum(size < 32 for size in drawn) < 1300  # half of the logarithms of 1 to 1024


@pytest.mark.parametrize("kind", ["normal", *ODD_KINDS])
@pytest.mark.parametrize("n", [1, 2, 7, 65])
def test_the_reference_is_the_definition(kind: str, n: int) -> None:
    """Row by row with exact sums, against the matrix form; a masked key weighs nothing."""
    import math

    case = ATTENTION.case(np.random.default_rng(n), n, kind)
    q, k, v = (part.astype(float) for part in case.inputs.values())
    assert np.isfinite(case.outputs["O"]).all()
    for i in range(n):
        logits = [-math.inf if math.isinf(k[j, 7]) else math.fsum(q[i] * k[j]) / 8 for j in range(n)]
        weights = [math.exp(one - max(logits)) for one in logits]
        row = [math.fsum(w * v[j, d] for j, w in enumerate(weights)) / math.fsum(weights) for d in range(64)]
        assert np.abs(case.outputs["O"][i] - row).max() < 1e-12


def test_masked_kinds_keep_a_key_and_mask_by_infinity() -> None:
    source = np.random.default_rng(6)
    for kind in MASKED_KINDS:
        for n in (1, 3, 64):
            q, k, _ = ATTENTION.case(source, n, kind).inputs.values()
            masked = np.isinf(k[:, 7])
            assert (q[:, 7] > 0).all() and not masked.all()
            assert masked.sum() == {"first": 3 * n // 4, "last": n - max(n // 4, 1)}.get(kind, masked.sum())


def test_huge_logits_are_exact_and_apart() -> None:
    q, k, _ = ATTENTION.case(np.random.default_rng(7), 300, "huge").inputs.values()
    exact = q.astype(float) @ k.astype(float).T
    for order in (np.arange(64), np.arange(64)[::-1], np.random.default_rng(8).permutation(64)):
        total = np.zeros((300, 300), np.float32)
        for d in order:
            total += np.outer(q[:, d], k[:, d])
        assert (total == exact).all()
    assert np.abs(exact).max() / 8 > 1e6
    assert np.diff(np.sort(exact, axis=1), axis=1).min() / 8 >= 128


def test_the_peak_is_measured_and_kept() -> None:
    workshop = Workshop()
    peak = workshop.flops_peak(None)
    assert peak > 0
    assert workshop.flops_peak(None) == peak
    assert workshop.flops_peak(None, remeasure=True) >= peak
    assert workshop.bytes_peak(None) > 0
    folder = workshop.folder
    workshop.close()
    assert not folder.exists()


def test_the_driver_is_built_once(tmp_path: Path) -> None:
    workshop = Workshop()
    prototype = ATTENTION.prototype
    first = workshop.driver(None, prototype)
    stamp = first.stat().st_mtime_ns
    assert workshop.driver(None, prototype) == first and first.stat().st_mtime_ns == stamp
    assert first.stat().st_mode & 0o777 == 0o755
    workshop.close()


def test_the_entry_says_what_it_is() -> None:
    entry = CpuProfiler.entry
    assert (entry.name, entry.metric, entry.effect) == ("CpuProfiler", "time_ns", "costly")
    assert entry.triggers == ("success", "fail", "timeout", "metric_improved", "plateau")
    assert entry.schema is SCHEMA
    assert not list(violations(SCHEMA, {"binary": "k.so"})) and not list(
        violations(SCHEMA, {"source": "k.py"})
    )
    assert list(violations(SCHEMA, {"problem": "attention"}))
