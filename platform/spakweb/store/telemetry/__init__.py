"""Rows of what was sent to a collector."""
