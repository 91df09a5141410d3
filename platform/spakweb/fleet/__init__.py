"""Runners, their devices, queues, and why a run waits."""
