"""Rows of suites, cases and experiments."""
