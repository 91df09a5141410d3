"""The lowest floor: people, rights, errors, text, the database; it knows no spec and no run."""
