"""The first page, what every page has around it, health, metrics."""
