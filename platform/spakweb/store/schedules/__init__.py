"""Rows of schedules."""
