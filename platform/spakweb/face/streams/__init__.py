"""What watchers of runs see as it happens: streams, summaries, who watches."""
