"""git repositories around tools: what a tool may leave in them, and the plumbing that commits."""
