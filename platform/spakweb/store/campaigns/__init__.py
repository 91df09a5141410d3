"""Rows of campaigns and their records."""
