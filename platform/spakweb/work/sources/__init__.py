"""Sources: adding them, what may leave a run, branches that go back."""
