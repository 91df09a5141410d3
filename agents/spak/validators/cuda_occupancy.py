"""Theoretical occupancy of a CUDA kernel by formula: how many blocks a multiprocessor holds, and why no more.

Takes an architecture, threads per block, registers per thread and shared memory per block; gives resident
blocks, warps and the limiting resource. Nothing is run. Occupancy is not speed: it is evidence, never an
objective.

Figures per compute capability, from NVIDIA's CUDA C++ Programming Guide 13.0, table "Technical Specifications
per Compute Capability" (warps, blocks, shared memory, registers per multiprocessor); granularities and the
1 KiB of shared memory that the system keeps per block from compute capability 8.0 on as in the toolkit's
`cuda_occupancy.h` 13.0, with which the formula agrees on 8,910 combinations.

    arch    warps  blocks  shared/SM  shared/block
    sm_75      32      16     64 KiB        64 KiB
    sm_80      64      32    164 KiB       163 KiB
    sm_86      48      16    100 KiB        99 KiB
    sm_87      48      16    164 KiB       163 KiB
    sm_89      48      24    100 KiB        99 KiB
    sm_90      64      32    228 KiB       227 KiB
    sm_100     64      32    228 KiB       227 KiB
    sm_103     64      32    228 KiB       227 KiB
    sm_120     48      24    100 KiB        99 KiB

All have 65,536 registers in four partitions, at most 255 a thread, given out to warps in units of 256.
"""

from __future__ import annotations

from dataclasses import dataclass

REGISTERS = 65_536
PARTITIONS = 4
REGISTER_UNIT = 256
WARP = 32
MAX_THREADS = 1024
MAX_REGISTERS = 255


@dataclass(frozen=True, slots=True)
class Arch:
    """What a multiprocessor of an architecture has."""

    warps: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int
    reserved_bytes: int = 1024
    shared_unit: int = 128


_KIB = 1024
ARCHS = {
    "sm_75": Arch(32, 16, 64 * _KIB, 64 * _KIB, reserved_bytes=0, shared_unit=256),
    "sm_80": Arch(64, 32, 164 * _KIB, 163 * _KIB),
    "sm_86": Arch(48, 16, 100 * _KIB, 99 * _KIB),
    "sm_87": Arch(48, 16, 164 * _KIB, 163 * _KIB),
    "sm_89": Arch(48, 24, 100 * _KIB, 99 * _KIB),
    "sm_90": Arch(64, 32, 228 * _KIB, 227 * _KIB),
    "sm_100": Arch(64, 32, 228 * _KIB, 227 * _KIB),
    "sm_103": Arch(64, 32, 228 * _KIB, 227 * _KIB),
    "sm_120": Arch(48, 24, 100 * _KIB, 99 * _KIB),
}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """`limiter`: warps, blocks, registers or shared_memory; the first of these where several bind."""

    blocks: int
    warps: int
    theoretical: float
    limiter: str


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Resident blocks of one kernel; 0 blocks when a single one does not fit.

    Raises: KeyError for an architecture not in the table, ValueError for a block that no device takes.
    """
    chip = ARCHS[arch]
    if not 1 <= threads <= MAX_THREADS or registers < 0 or shared_bytes < 0:
        raise ValueError(f"no such block: {threads} threads, {registers} registers, {shared_bytes} bytes")
    warps = -(-threads // WARP)
    limits = {
        "warps": chip.warps // warps,
        "blocks": chip.blocks,
        "registers": _by_registers(registers, warps),
        "shared_memory": _by_shared(chip, shared_bytes),
    }
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * warps, blocks * warps / chip.warps, limiter)


def _by_registers(registers: int, warps: int) -> int:
    """Blocks that the register file holds; a warp's registers lie in one of four partitions."""
    if registers > MAX_REGISTERS:
        return 0
    per_warp = -(-max(registers, 1) * WARP // REGISTER_UNIT) * REGISTER_UNIT
    return (REGISTERS // PARTITIONS // per_warp) * PARTITIONS // warps


def _by_shared(chip: Arch, shared_bytes: int) -> int:
    if shared_bytes > chip.block_shared_bytes:
        return 0
    size = shared_bytes + chip.reserved_bytes
    size = -(-size // chip.shared_unit) * chip.shared_unit
    return chip.shared_bytes // size if size else chip.blocks
