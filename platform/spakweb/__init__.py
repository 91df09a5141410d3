"""The Django side of SPAK; empty until the platform lands."""
