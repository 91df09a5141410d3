"""The tools: one file each, and their table in `registry`. Importing it starts and loads nothing heavy."""

from spak.tools.registry import DECLARED, TOOLS, table

__all__ = ["DECLARED", "TOOLS", "table"]
