"""Patches to specs: proposed, reviewed, merged as exactly the text that was reviewed (docs/reviews.md)."""
