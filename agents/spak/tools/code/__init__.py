"""Tools that ask a model of code: find_symbol, references, impact, code_map, search_code."""
