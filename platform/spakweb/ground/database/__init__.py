"""The database's settings, engines, limits, checks of its tables, and what damages it."""
