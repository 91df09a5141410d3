"""Strategies: shipped specs for kinds of tasks, and which one a request is served by.

`shipped` reads the headers of specs/strategies, `folder` turns a request and a folder into a Situation, and
`select` asks the law specs/policy/strategies/select.mg: exactly one strategy, or why there is none. Nothing
here runs a spec. Source: seed 004 section 3.1; docs/strategies.md.
"""

from spak.strategies.folder import look, manage_of
from spak.strategies.select import Choice, Selector
from spak.strategies.shipped import Strategy, shipped
from spak.strategies.situation import KINDS, Situation

__all__ = ["KINDS", "Choice", "Selector", "Situation", "Strategy", "look", "manage_of", "shipped"]
