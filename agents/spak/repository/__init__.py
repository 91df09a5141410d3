"""Git on the host: the one place that runs it, streams of commits, the repositories of a run."""
