"""Specs as tools, and their runs as resources, for clients of the Model Context Protocol."""
