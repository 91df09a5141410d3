"""Id tokens of a CI's jobs: their claims and keys, and the token of a team that they are exchanged for."""
