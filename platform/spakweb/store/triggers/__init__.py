"""Rows of triggers."""
