"""Jobs of a CI that come in with an id token of their host (OpenID Connect) and get a token of a team."""
