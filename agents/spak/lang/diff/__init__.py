"""The semantic difference of two specs: changes, capability delta, flags for a reviewer; blame by field."""

from spak.lang.diff.blame import Field, fields
from spak.lang.diff.compare import compare
from spak.lang.diff.model import Capability, Change, Difference, Flag
from spak.lang.diff.show import show

__all__ = ["Capability", "Change", "Difference", "Field", "Flag", "compare", "fields", "show"]
