"""Suites of a team: cases kept from runs, and experiments that run them under versions of specs."""
