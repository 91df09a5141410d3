"""Pages of the rules for jobs of a CI."""
