"""Outgoing webhooks: adding, signing, delivering."""
