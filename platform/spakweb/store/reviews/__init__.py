"""Rows of patches, revisions, verdicts, comments, checks and the history of specs."""
