"""The engine of SQLite."""
