"""Suites: cases, sealed checks, experiments, their budgets and verdicts."""
