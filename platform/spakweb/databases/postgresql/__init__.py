"""The database engine `spakweb.databases.postgresql`."""
