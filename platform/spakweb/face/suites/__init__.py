"""Pages of suites and experiments."""
