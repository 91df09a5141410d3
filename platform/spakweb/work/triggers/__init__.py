"""Triggers: signed messages begin runs, with inputs taken from the message."""
