"""Django's PostgreSQL and SQLite, with connections that threads of one process hand on."""
