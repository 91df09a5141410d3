"""SPAK, the Semantic Programmable Agent Kernel: agents as programs."""

__version__ = "0.2.0"
