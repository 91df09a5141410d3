"""Template tags of reviews."""
