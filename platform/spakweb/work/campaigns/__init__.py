"""Campaigns: candidates of a spec go through the gate in the background and become patches."""
