"""Campaigns: candidates of one spec, judged stage by stage within a budget, in a ledger that replays."""

from spak.evolve.campaigns.campaign import Campaign, Half, Pair, Plan, Tested, Writer
from spak.evolve.campaigns.front import points, spending
from spak.evolve.campaigns.judge import Judging, advance, certain, go_on, settled, verify

__all__ = [
    "Campaign",
    "Half",
    "Judging",
    "Pair",
    "Plan",
    "Tested",
    "Writer",
    "advance",
    "certain",
    "go_on",
    "points",
    "settled",
    "spending",
    "verify",
]
