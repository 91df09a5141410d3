"""Lines of the log: their form, how many of one kind, and what is taken out of them."""
