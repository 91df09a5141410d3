"""Occupancy against answers of the toolkit's `cuda_occupancy.h` (13.0), compiled on a host and recorded."""

from __future__ import annotations

import pytest

from spak.validators.cuda_occupancy import ARCHS, occupancy

BITS = {"warps": 1, "registers": 2, "shared_memory": 4, "blocks": 8}

RECORDED = [  # capability, registers, threads, shared bytes; resident blocks, limiting factors as bits
    (75, 8, 32, 0, 16, 8),
    (75, 24, 384, 49152, 1, 4),
    (75, 40, 128, 1024, 8, 1),
    (75, 64, 1024, 65536, 1, 7),
    (75, 96, 384, 4096, 1, 2),
    (75, 168, 96, 99000, 0, 4),
    (75, 200, 1024, 16384, 0, 2),
    (80, 8, 256, 160000, 1, 4),
    (80, 32, 96, 32768, 4, 4),
    (80, 40, 1024, 0, 1, 2),
    (80, 65, 256, 49152, 3, 6),
    (80, 128, 96, 1024, 5, 2),
    (80, 168, 768, 65536, 0, 2),
    (80, 255, 256, 4096, 1, 2),
    (86, 24, 64, 99000, 1, 4),
    (86, 32, 768, 16384, 2, 3),
    (86, 64, 192, 160000, 0, 4),
    (86, 96, 64, 32768, 3, 4),
    (86, 128, 768, 0, 0, 2),
    (86, 200, 192, 49152, 1, 2),
    (87, 8, 64, 1024, 16, 8),
    (87, 24, 512, 65536, 2, 4),
    (87, 40, 192, 4096, 8, 3),
    (87, 65, 32, 99000, 1, 4),
    (87, 96, 512, 16384, 1, 2),
    (87, 168, 128, 160000, 1, 4),
    (87, 255, 32, 32768, 4, 4),
    (89, 8, 512, 0, 3, 1),
    (89, 32, 128, 49152, 2, 4),
    (89, 64, 32, 1024, 24, 8),
    (89, 65, 384, 65536, 1, 4),
    (89, 128, 128, 4096, 4, 2),
    (89, 168, 1024, 99000, 0, 2),
    (89, 255, 384, 16384, 0, 2),
    (90, 24, 96, 160000, 1, 4),
    (90, 32, 1024, 32768, 2, 3),
    (90, 64, 384, 0, 2, 2),
    (90, 96, 96, 49152, 4, 4),
    (90, 128, 1024, 1024, 0, 2),
    (90, 200, 256, 65536, 1, 2),
    (100, 8, 96, 4096, 21, 1),
    (100, 24, 768, 99000, 2, 5),
    (100, 40, 256, 16384, 6, 2),
    (100, 65, 64, 160000, 1, 4),
    (100, 96, 768, 32768, 0, 2),
    (100, 168, 256, 0, 1, 2),
    (100, 255, 64, 49152, 4, 6),
    (103, 8, 768, 1024, 2, 1),
    (103, 32, 192, 65536, 3, 4),
    (103, 64, 64, 4096, 16, 2),
    (103, 65, 512, 99000, 1, 2),
    (103, 128, 192, 16384, 2, 2),
    (103, 200, 32, 160000, 1, 4),
    (103, 255, 512, 32768, 0, 2),
    (120, 24, 192, 0, 8, 1),
    (120, 40, 32, 49152, 2, 4),
    (120, 64, 512, 1024, 2, 2),
    (120, 96, 128, 65536, 1, 4),
    (120, 168, 32, 4096, 12, 2),
    (120, 200, 384, 99000, 0, 2),
]


@pytest.mark.parametrize(("capability", "registers", "threads", "shared", "blocks", "factors"), RECORDED)
def test_recorded_answers(
    capability: int, registers: int, threads: int, shared: int, blocks: int, factors: int
) -> None:
    result = occupancy(f"sm_{capability}", threads, registers, shared)
    assert result.blocks == blocks
    assert BITS[result.limiter] & factors


def test_a_register_bound_kernel() -> None:
    result = occupancy("sm_90", 128, 168, 16_384)
    assert (result.blocks, result.warps, result.theoretical, result.limiter) == (3, 12, 0.1875, "registers")


def test_a_block_that_cannot_run() -> None:
    assert occupancy("sm_90", 1024, 168, 0).blocks == 0
    assert occupancy("sm_80", 128, 32, 164 * 1024).limiter == "shared_memory"
    assert occupancy("sm_80", 128, 256, 0).blocks == 0


def test_nonsense_is_refused() -> None:
    for threads, registers, shared in ((0, 1, 0), (1025, 1, 0), (1, -1, 0), (1, 1, -1)):
        with pytest.raises(ValueError, match="no such block"):
            occupancy("sm_80", threads, registers, shared)
    with pytest.raises(KeyError):
        occupancy("sm_1", 128, 32, 0)


def test_more_of_anything_never_raises_occupancy() -> None:
    for arch in ARCHS:
        for threads in (32, 96, 256, 1024):
            blocks = [occupancy(arch, threads, registers, 0).blocks for registers in range(1, 256)]
            assert blocks == sorted(blocks, reverse=True)
            blocks = [occupancy(arch, threads, 32, shared).blocks for shared in range(0, 240_000, 777)]
            assert blocks == sorted(blocks, reverse=True)
