"""`spak lsp`: the language server on standard input and output."""

from __future__ import annotations

import os

import click


@click.command()
@click.option("--stdio", is_flag=True, help="Use standard input and output; always the case.")
@click.option("--json", "as_json", is_flag=True, help="Changes nothing: its output is always JSON.")
def command(stdio: bool, as_json: bool) -> int:
    """Serve an editor over the Language Server Protocol until it ends the session. Exit 0 after `shutdown`,
    else 1.

    Only the protocol uses standard output; everything else goes to standard error.
    """
    from spak import config
    from spak.cli import common
    from spak.lsp import serve

    if os.isatty(0):
        common.say("spak lsp waits for an editor that speaks the Language Server Protocol; CTRL-C ends it")
    catalog, chosen = common.catalog(), config.settings()
    sink = os.dup(1)
    os.dup2(2, 1)
    try:
        return serve(catalog, config.law(chosen), chosen.approvers, 0, sink)
    finally:
        os.close(sink)
