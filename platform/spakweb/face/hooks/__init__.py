"""Pages of outgoing webhooks."""
