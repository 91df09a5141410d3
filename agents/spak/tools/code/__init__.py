"""Tools that ask a model of code: find_symbol, references, impact, search_code."""
