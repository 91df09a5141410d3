"""Hints between processes that a run has news, and the output of running steps."""
