"""Pages of sources, and of what a run gives back to one."""
