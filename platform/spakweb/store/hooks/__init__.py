"""Rows of outgoing webhooks and their deliveries, and the triggers that fill the outbox."""
