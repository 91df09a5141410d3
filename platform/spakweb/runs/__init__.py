"""Runs on the platform: rows, the ledger in the database, what workers do, what pages show."""
