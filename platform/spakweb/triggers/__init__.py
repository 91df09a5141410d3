"""Triggers: signed messages of other programs that begin runs, with inputs taken from the message."""
