"""Rows of incoming webhooks and of the messages that came."""
