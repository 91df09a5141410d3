"""Patches: proposing, reading, rules, checks, the merge queue, merging, history."""
