"""What a run shows of itself, made from its state and ledger alone: JSON, events, items, reports, figures."""
