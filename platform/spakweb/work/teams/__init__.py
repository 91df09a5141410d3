"""Actions of teams: members, roles, rules, tokens, and signing in with them."""
