"""Rows of the rules for jobs of a CI that come with an id token."""
