"""Rows of runners."""
