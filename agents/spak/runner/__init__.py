"""The runner: appends commits, does effects, and brings back what they gave as proposals.

It decides nothing: `kernel.step` does, on what the runner feeds it. One `Run` is one run held by a lease.
"""

from spak.runner.host import SHIPPED, Host, Own
from spak.runner.run import Run, Stop
from spak.runner.views.run_json import View, view

__all__ = ["SHIPPED", "Host", "Own", "Run", "Stop", "View", "view"]
