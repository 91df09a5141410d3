"""The page of runners, their devices and queues, and why a run waits."""
