"""Pages of specs, their versions, changes and problems."""
