"""Deterministic simulation: kernel, runner, queue, ledger, leases and faults from one seed."""
