"""People, teams, roles and invitations."""
