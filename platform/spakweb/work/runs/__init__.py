"""Actions on runs: starting, forking, answering, controlling; their files."""
