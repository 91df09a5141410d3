"""SPAK, the Semantic Programmable Agent Kernel: agents as programs."""

import warnings

__version__ = "0.2.0"

# Sources of agents and of their projects are parsed to judge them, and never run here: what Python 3.12 and
# later print about one ("invalid escape sequence") says nothing to whoever reads the terminal of `spak`.
warnings.filterwarnings("ignore", category=SyntaxWarning, module="<unknown>")
