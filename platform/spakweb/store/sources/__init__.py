"""Rows of a team's git repositories, and the files that are fetched from them."""
