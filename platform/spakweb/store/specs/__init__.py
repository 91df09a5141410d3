"""Rows of specs, versions, tags and drafts; which texts a spec imports, and what is in them."""
