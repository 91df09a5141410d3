"""Rows of folders of a repository that are synced with specs."""
