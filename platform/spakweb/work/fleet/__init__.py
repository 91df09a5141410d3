"""Runners register and send heartbeats."""
