"""Incoming webhooks: addresses that other programs send signed messages to, and the log of what came."""
