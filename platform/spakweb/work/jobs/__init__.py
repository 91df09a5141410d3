"""The work of workers besides runs: its kinds, one queue, holding a job, trying again."""
