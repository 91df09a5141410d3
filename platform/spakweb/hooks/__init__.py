"""Outgoing webhooks: a team's runs report to its other programs when they wait, pause or end."""
