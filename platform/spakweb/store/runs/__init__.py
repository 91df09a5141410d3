"""Rows of runs and their records, leases, keys that sign approvals, and states in words."""
