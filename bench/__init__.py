"""Our figures beside their floors: one `bench_*.py` per subject, all run by `python -m bench`."""
