"""What watchers of runs see as it happens: hints, streams, and who watches."""
