"""What workers do with runs: queues and slots, taking a run, holding it, trying again, tasks."""
