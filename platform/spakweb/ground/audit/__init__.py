"""What people did: events that are only ever added."""
