"""Syncs of folders with specs, in both directions."""
