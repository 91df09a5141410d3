"""The page *Work*: what waits, runs or failed, and why."""
