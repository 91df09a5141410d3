"""The database engine `spakweb.databases.sqlite3`."""
