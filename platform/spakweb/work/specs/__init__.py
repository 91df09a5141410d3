"""Actions on specs: saving, tagging, archiving; problems of a team; differences in words."""
