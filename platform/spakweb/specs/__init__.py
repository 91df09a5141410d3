"""Specs, their immutable versions, tags and drafts."""
