"""An agent that people already use, behind the walls: a proposer from outside (ADR 0120).

`session` holds one run of the shipped spec specs/guard/guest.spak with the agent's copy; `inside` starts the
agent in the sandbox; `proxy` is its only way out; `wire` reads what models say they used. The kernel decides
on what it proposes, as on any proposal.
"""

TASK = "session"
"""Of specs/guard/guest.spak: what an agent proposes in."""
