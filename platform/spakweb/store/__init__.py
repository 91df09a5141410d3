"""The floor of what is kept: rows of every subject, ledgers, blobs, fetched files, hints."""
