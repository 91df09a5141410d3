"""Pages of guarded sessions."""
