"""Pages of runs: lists, one run in its parts, files, comparing, dashboards."""
