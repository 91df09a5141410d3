"""How large a spec may be: the limits that `spak check` and every reader of specs hold it to.

docs/language.md shows them (spak.lang.reference). Of how many mistakes each reader reports is its own matter.
"""

from __future__ import annotations

MAX_BYTES = 256 * 1024
"""Of a file in UTF-8, and of a spec with its imports."""
MAX_TASKS = 2000
MAX_DEPTH = 64
"""Brackets inside one another."""
MAX_NOTS = 8
"""`not` in a row."""
MAX_IMPORTED_FILES = 64
MAX_IMPORT_DEPTH = 8
