"""What the proposer `evolve` is made of: its options, the archive that it folds, and what it asks."""
