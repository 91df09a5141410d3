"""AgentDojo replayed through our policy engine, without a model: see docs/agentdojo.md."""
