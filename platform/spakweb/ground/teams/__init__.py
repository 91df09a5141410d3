"""Rows of people, teams, roles, invitations and tokens; the law of a team."""
