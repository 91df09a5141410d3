"""Runs as spans for a collector of OpenTelemetry: folded from records, sent when a run has ended."""
