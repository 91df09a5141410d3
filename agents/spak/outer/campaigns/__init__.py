"""Campaigns: candidates of one spec, judged stage by stage within a budget, in a ledger that replays."""

from spak.outer.campaigns.campaign import Campaign, Pair, Plan, Tested
from spak.outer.campaigns.judge import Judging, advance, verify

__all__ = ["Campaign", "Judging", "Pair", "Plan", "Tested", "advance", "verify"]
