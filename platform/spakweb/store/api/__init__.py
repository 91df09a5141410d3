"""Rows of answers of the API that are given once (Idempotency-Key)."""
