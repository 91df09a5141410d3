"""`spak mcp`: our tools as a server of MCP (spak.cli.mcp_serve), and those of others, whose definitions a
person approves and a lock file pins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UsageError, UserError

if TYPE_CHECKING:
    from spak.mcp.pins import Difference, Server
    from spak.tools.served import Servers


@click.group(invoke_without_command=True)
@click.option(
    "--workspace", "folder", type=click.Path(path_type=Path), default=Path(), show_default=True,
    help="The folder of the project; calls work in a copy.",
)  # fmt: skip
@click.option(
    "--wait", type=click.FloatRange(0, 3600), default=20, show_default=True, metavar="S",
    help="Seconds that a call waits for a person, before it is told to go on meanwhile.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N",
    help="Serve by HTTP at this port of this machine (0: a free one), not on standard input and output.",
)  # fmt: skip
@common.runs_option
@click.pass_context
def command(
    ctx: click.Context, folder: Path, wait: float, port: int | None, runs_dir: Path | None
) -> int | None:
    """Offer our tools to a client of MCP, on standard input and output, as one run; or, with a verb, use
    those of others: approved by a person, pinned in spak-mcp.lock, judged as any tool of a run."""
    if ctx.invoked_subcommand is not None:
        return None
    from spak.cli.mcp_serve import serve

    return serve(folder, wait, port, runs_dir)


@command.command("add", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})
@click.option("--yes", is_flag=True, help="Approve without a question; for scripts.")
@click.option("--pure", multiple=True, metavar="TOOL", help="TOOL changes nothing: it may be called again.")
@click.option(
    "--texts", multiple=True, metavar="TOOL",
    help="Let models read the texts of TOOL although there are findings in them.",
)  # fmt: skip
@click.option("--secret", "secrets", multiple=True, metavar="NAME", help="Arguments may hold secret://NAME.")
@click.option(
    "--token", default="", metavar="NAME", help="Send the secret NAME as the server's bearer token."
)
@common.json_option
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="COMMAND...|URL")
def add_command(
    yes: bool,
    pure: tuple[str, ...],
    texts: tuple[str, ...],
    secrets: tuple[str, ...],
    token: str,
    as_json: bool,
    name: str,
    words: tuple[str, ...],
) -> int:
    """Show what a server offers, and approve it. Options come before NAME."""
    from spak.mcp import definitions, pins

    known = pins.read(_lock())
    server = replace(_asked(definitions.server_name(name), words), secrets=secrets, token=token, pure=pure)
    with _servers({name: server}) as servers:
        listed = servers.definitions(name)
    made, findings = _approvable(server, listed, known, texts)
    if unknown := {*pure, *texts} - {*made.tools}:
        raise UsageError("mcp.name", f"{name} has no usable tool {min(unknown)!a}", "spak mcp list")
    if name in known:
        _say_differences(known[name], pins.differences(known[name], listed, made.identity), listed)
    _show(made, findings)
    if not made.tools:
        raise UsageError("mcp.empty", f"{name} has no tool that a run could use", "see why above")
    if not yes and not click.confirm(f"Approve {len(made.tools)} tools of {name}?", err=True):
        common.say("nothing was written")
        return 1
    pins.write(_lock(), {**known, name: made})
    if as_json:
        common.emit({"servers": [_row(made)]})
        return 0
    common.say(f"{pins.LOCK}: {name} is pinned ({made.pin}); commit it")
    first = next(iter(made.ids()))
    common.say(f'next: TOOLS [{first}] in a spec, and in your law: mcp_may("{name}", "{made.ids()[first]}").')
    return 0


@command.command("list")
@common.json_option
def list_command(as_json: bool) -> int:
    """List the servers that are approved, and their tools."""
    from spak.mcp import pins

    known = pins.read(_lock())
    if as_json:
        common.emit({"servers": [_row(one) for one in known.values()]})
        return 0
    for server in known.values():
        click.echo(f"{server.name}  {server.transport}  {server.pin}  {server.url or ' '.join(server.argv)}")
        for made, tool in server.ids().items():
            click.echo(f"  {made}  ({tool})")
        for tool, why in server.refused.items():
            click.echo(f"  refused: {why or tool}")
    if not known:
        common.say("next: spak mcp add NAME COMMAND")
    return 0


@command.command("check")
@common.json_option
@click.argument("names", nargs=-1, metavar="[NAME]...")
def check_command(as_json: bool, names: tuple[str, ...]) -> int:
    """Connect to the servers, and say what is not as it was approved. Exit 1 where something is not."""
    from spak.mcp import pins

    known = pins.read(_lock())
    chosen = [_known(known, name) for name in names] or list(known.values())
    rows: list[dict[str, Any]] = []
    with _servers(known) as servers:
        for server in chosen:
            row = _row(server)
            try:
                listed = servers.definitions(server.name)
                found = pins.differences(server, listed, servers.identity(server))
            except UserError as error:
                rows.append({**row, "error": error.code, "changes": []})
                common.say(f"{server.name}: {error.message} [{error.code}]")
                continue
            changes = [{"tool": one.tool, "state": one.state, "field": one.field} for one in found]
            rows.append({**row, "changes": changes})
            if not as_json:
                _say_differences(server, found, listed)
                if not found:
                    click.echo(f"{server.name}: as it was approved")
    if as_json:
        common.emit({"servers": rows})
    return 1 if any(row["changes"] or "error" in row for row in rows) else 0


@command.command("remove")
@common.json_option
@click.argument("name")
def remove_command(as_json: bool, name: str) -> int:
    """Take a server out of the lock file."""
    from spak.mcp import pins

    known = pins.read(_lock())
    gone = _known(known, name)
    pins.write(_lock(), {key: one for key, one in known.items() if key != name})
    if as_json:
        common.emit({"servers": [_row(gone)]})
    else:
        common.say(f"{pins.LOCK}: {name} is removed")
    return 0


def _lock() -> Path:
    from spak.mcp.pins import LOCK

    return Path(LOCK)


def _known(servers: Mapping[str, Server], name: str) -> Server:
    """Raises: UsageError `mcp.unknown`."""
    if name not in servers:
        raise UsageError("mcp.unknown", f"no server {name!a} is approved here", "spak mcp list")
    return servers[name]


def _row(server: Server) -> dict[str, Any]:
    tools = [{"id": key, "name": tool} for key, tool in server.ids().items()]
    row: dict[str, Any] = {"name": server.name, "transport": server.transport, "pin": server.pin}
    return {**row, "tools": tools, "refused": dict(server.refused)}


def _asked(name: str, words: Sequence[str]) -> Server:
    """The server of a command line or a URL, without its tools. Raises: UsageError `mcp.*`."""
    from spak import config
    from spak.mcp import identity
    from spak.mcp.pins import Server
    from spak.tools.served import url_of

    if len(words) == 1 and "://" in words[0]:
        url_of(words[0])
        return Server(name, url=words[0])
    identity.judge(words)
    where = Path(), config.toolchain(config.settings().binds).programs
    return Server(
        name,
        argv=tuple(words),
        files=identity.files(words, *where),
        packages=identity.packages(words, *where),
    )


@contextmanager
def _servers(approved: Mapping[str, Server]) -> Iterator[Servers]:
    """Connections to servers, ended afterwards."""
    from spak import config
    from spak.own import starting
    from spak.tools.served import Servers

    made = Servers(approved, starting(config.settings(), Path()))
    try:
        yield made
    finally:
        made.close()


def _approvable(
    server: Server, listed: Sequence[Mapping[str, Any]], known: Mapping[str, Server], texts: Sequence[str]
) -> tuple[Server, dict[str, list[str]]]:
    """The server with the tools that a run can use, and the findings in their texts."""
    from spak.mcp import definitions, pins
    from spak.tools import TOOLS

    tools: dict[str, Mapping[str, Any]] = {}
    refused: dict[str, str] = {}
    ids: dict[str, str] = {}
    for one in listed:
        name = str(one.get("name"))
        try:
            made = definitions.tool_id(server.name, name)
            definitions.schema(one)
            pins.pin(server.name, one)
        except UserError as error:
            refused[name] = f"{error.message} [{error.code}]"
            continue
        if made in ids:
            other = ids[made]
            tools.pop(other, None)
            refused[name] = refused[other] = f"{name!a} and {other!a} both become {made} [mcp.name]"
            continue
        ids[made], tools[name] = name, definitions.pinned(one)
    others = {
        *tools,
        *TOOLS,
        *(tool for one in known.values() if one.name != server.name for tool in one.tools),
    }
    telling = {name for name in others if any(sign in name for sign in "_-.") or name != name.lower()}
    findings = {name: definitions.lint(one, telling - {name}) for name, one in tools.items()}
    return replace(
        server,
        tools=tools,
        refused=refused,
        prose=tuple(name for name in tools if not findings[name] or name in texts),
        list_hash=pins.list_hash(server.name, listed),
    ), findings


def _show(server: Server, findings: Mapping[str, Sequence[str]]) -> None:
    """Every definition as text, with what is found in it; on standard error."""
    from spak import unseen
    from spak.mcp import definitions

    for name, one in server.tools.items():
        common.say(definitions.shown(one))
        for line in findings[name]:
            common.say(f"  ! {unseen.written_out(line)}")
        if name not in server.prose:
            common.say("  models see its names and types, none of its texts (--texts shows them)")
    for why in server.refused.values():
        common.say(f"refused: {unseen.written_out(why)}")


def _say_differences(
    server: Server, found: Sequence[Difference], listed: Sequence[Mapping[str, Any]]
) -> None:
    """What is not as it was approved, for people."""
    import json

    from spak import unseen
    from spak.mcp import pins

    def text(one: Mapping[str, Any] | None, field: str) -> str:
        value = (one or {}).get(field.partition("/")[0])
        return unseen.written_out(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

    now = {str(one.get("name")): one for one in listed}
    pairs = pins.renamed(found)
    for old, new in pairs:
        common.say(
            f"{server.name}: {old} is gone and {unseen.written_out(new)} came: it may be the same tool"
        )
    for one in found:
        if pairs and one.state in ("gone", "new"):
            continue
        of = f"{server.name}.{unseen.written_out(one.tool)}" if one.tool else server.name
        common.say(f"{of}: {one.state} {unseen.written_out(one.field)}".rstrip())
        if one.state == "changed" and one.tool in server.tools:
            common.say(f"  - {text(server.tools[one.tool], one.field)}")
            common.say(f"  + {text(now.get(one.tool), one.field)}")
