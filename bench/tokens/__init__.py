"""Prompt tokens of recorded runs under each memory policy: see docs/context.md and bench_tokens.py."""
