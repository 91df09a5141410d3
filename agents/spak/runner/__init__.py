"""The runner: appends commits, does effects, and brings back what they gave as proposals.

It decides nothing: `kernel.step` does, on what the runner feeds it. One `Run` is one run held by a lease.
"""

from spak.runner.host import Host
from spak.runner.run import Run, Stop
from spak.runner.views.run_json import View, view

__all__ = ["Host", "Run", "Stop", "View", "view"]
