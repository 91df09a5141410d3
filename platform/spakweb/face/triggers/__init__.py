"""Pages of triggers."""
