"""Trying CudaProfiler on any GPU: `tree` writes and runs a tree of files that needs no package of ours."""

from __future__ import annotations

from spak.validators.selftest.tree import KERNELS, run, write_tree

__all__ = ["KERNELS", "run", "write_tree"]
