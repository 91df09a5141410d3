"""Pages of teams, members, roles, tokens."""
