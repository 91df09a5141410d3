"""`nsight`: Nsight Compute's command line (`ncu`) on a program of the workspace, where there is a device.

Without `ncu` in the toolchain it says so and exits 127; where `ncu` finds no device, its own message and exit
code are the result. No figure is ever made up.
"""

from __future__ import annotations

from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import inside, results


class Nsight:
    """The tool `nsight`."""

    entry = ToolEntry(
        name="nsight",
        version=1,
        summary="Profiles a CUDA program with Nsight Compute; says so where there is no device.",
        schema=parts.members(
            ["cmd"],
            cmd=parts.listed(
                "The program and its arguments.", {"type": "string", "maxLength": 65536}, 256, 1
            ),
            metrics=parts.listed(
                "Metrics of ncu by name; else its basic set.",
                {"type": "string", "maxLength": 200, "pattern": "^[A-Za-z0-9_.]+$"},
                64,
            ),
            timeout_s=parts.TIMEOUT,
        ),
        effect="effect",
        on_fail="continue",
        arguments={"cmd": "runs", "metrics": "text", "timeout_s": "text"},
    )

    def run(self, call: Call) -> ToolResult:
        profiler = inside.program(call, "ncu")
        if not profiler:
            return results.failed(
                "nsight.unavailable",
                "Nsight Compute is not installed: nothing was measured",
                "install ncu on a machine with a device; nvcc gives static evidence without one",
                exit=results.MISSING,
            )
        metrics = [str(name) for name in call.args.get("metrics", ())]
        chosen = ("--metrics", ",".join(metrics)) if metrics else ("--set", "basic")
        command = inside.resolved(call, [str(word) for word in call.args["cmd"]])
        outcome = inside.run(
            call,
            (profiler, "--csv", *chosen, *command),
            timeout_s=call.args.get("timeout_s"),
            heard=call.heard,
        )
        return results.of_outcome(outcome)
