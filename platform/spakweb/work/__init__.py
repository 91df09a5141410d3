"""The floor of what is done: actions, jobs and workers; below it are ground and store."""
