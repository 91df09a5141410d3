"""Rows of the work of workers, its leases and pauses."""
