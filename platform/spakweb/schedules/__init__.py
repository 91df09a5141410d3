"""Schedules: runs that begin by the clock, with the rights of the person who answers for them."""
