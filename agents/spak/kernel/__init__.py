"""The kernel: a deterministic state machine that decides on proposals; it does nothing itself."""
