"""Schedules: adding them, when they fire, firing."""
