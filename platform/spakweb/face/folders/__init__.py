"""Pages of synced folders."""
