"""AgentDojo replayed through our policy engine, without a model: see docs/agentdojo.md."""

from pathlib import Path

SUITES = ("workspace", "travel", "banking", "slack")
POLICIES = Path(__file__).parent / "policies"
