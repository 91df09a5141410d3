"""Pages of patches: the list, a patch, blame, the inbox, rules."""
