"""Metrics: which of two candidates is better, and the signal that a measurement gives."""
