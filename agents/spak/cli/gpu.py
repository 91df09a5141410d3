"""`spak gpu selftest`: CudaProfiler's rules tried on this machine's GPU, or the tree to do so elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spak.cli import common
from spak.files.scratch import Scratch

HINTS = {
    "unavailable.device": "run it where nvidia-smi shows a GPU; --export DIR writes what to take along",
    "unavailable.nvcc": "install the CUDA toolkit, or name the compiler with --nvcc",
}


@click.group()
def command() -> None:
    """Try the measuring of kernels on a GPU."""


@command.command("selftest")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("gpu-report.json"), help="The report."
)
@click.option(
    "--export", type=click.Path(path_type=Path), help="Write the tree of files into this folder instead."
)
@click.option("--nvcc", default="", help="The compiler, if it is not on the PATH.")
@click.option("--equal", type=click.IntRange(0, 1000), default=12, help="Comparisons of equal kernels.")
@common.json_option
def selftest(output: Path, export: Path | None, nvcc: str, equal: int, as_json: bool) -> int:
    """Compile, check and time the shipped CUDA kernels, compare equal ones, and try known hacks: 0 when all
    holds, else 1; 7 where there is no device or no toolkit. Everything is in the report."""
    from spak.errors import UnavailableError, UsageError
    from spak.validators import selftest as tried

    if export is not None:
        try:
            tried.write_tree(export)
        except OSError as error:
            raise UsageError(
                "usage.file", f"{export}: {error.strerror}", "name a folder that does not exist"
            ) from error
        common.say(f"{export}: next, on a machine with a GPU: python3 {export.name}/selftest.py")
        return 0
    try:
        output.touch()
    except OSError as error:
        raise UsageError(
            "usage.file", f"{output}: {error.strerror}", "name a file that can be written"
        ) from error
    options = ["--equal", str(equal), *(["--nvcc", nvcc] if nvcc else [])]
    with Scratch("gpu") as folder:
        tree = folder / "tree"
        tried.write_tree(tree)
        status, report = tried.run(tree, output.absolute(), options)
    if report["code"] in HINTS:
        raise UnavailableError(report["code"], f"{report['detail']}; report: {output}", HINTS[report["code"]])
    if as_json:
        common.emit(report)
    else:
        _show(report, output)
    return status


def _show(report: dict[str, Any], output: Path) -> None:
    common.say(f"{report['device']['name']}, {report['nvcc']}")
    for row in report["kernels"]:
        time = f"{row.get('median_ns', 0) / 1000:.1f} us, spread {row.get('spread_ppm', 0) / 1e4:.1f} %"
        common.say(f"  {row['name']:<18} {time if row['ok'] else row['code']}")
    for row in report["comparisons"]:
        common.say(f"  {row['candidate']} against {row['incumbent']}: {row['outcome']}")
    equal = report["equal"]
    common.say(f"  equal kernels: {equal['improved']} of {equal['comparisons']} called improved")
    missed = [row["name"] for row in report["hacks"] if not row["ok"]]
    common.say(f"  hacks: {len(report['hacks']) - len(missed)} of {len(report['hacks'])} as they should end")
    common.say(f"{'ok' if report['ok'] else report['detail']}\nreport: {output}")
