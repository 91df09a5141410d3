"""Tags of the pages that show runs."""
