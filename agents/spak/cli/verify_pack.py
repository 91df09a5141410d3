"""`spak verify-pack FILE|-`: is this pack what was stated, and does every decision follow?"""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common

MAX_KEY_BYTES = 4096


@click.command()
@click.argument("file")
@click.option(
    "--key", metavar="KEY", help="The public key that must have signed it: a file, or its base64url."
)
@click.option(
    "--log-key", metavar="KEY", help="The public key of the log that must have the run: name+id+key."
)
@click.option("--witness", multiple=True, metavar="KEY", help="A witness that must have signed the log too.")
@click.option("--no-replay", is_flag=True, help="Do not derive the decisions again.")
@common.json_option
def command(
    file: str,
    key: str | None,
    log_key: str | None,
    witness: tuple[str, ...],
    no_replay: bool,
    as_json: bool,
) -> int:
    """Check FILE (- for standard input), a pack of spak export --as pack or of a platform.

    Checked are its records, that its statement is of them, who signed it, and that every decision follows
    from the proposals.
    """
    from spak.cli import ledger_input
    from spak.cli.ledger import key_of
    from spak.ledger.pack import Keys, verify_pack
    from spak.runner.views.report import plural

    keys = Keys(
        None if key is None else _public(key),
        None if log_key is None else key_of(log_key),
        tuple(key_of(one) for one in witness),
    )
    found = verify_pack(ledger_input.open_file(file), keys, replayed=not no_replay)
    about = found.to_json()
    if as_json:
        common.emit(about)
        return 0 if found.ok else 1
    for item in found.problems:
        common.say(f"record {item.seq}: {item.message} [{item.code}]")
    for item in found.notes:
        common.say(f"note: {item.message} [{item.code}]")
    common.say(
        f"{plural(found.report.records, 'record')} of run {about['run']}, summary {about['summary_hash']}"
    )
    common.say("VALID" if found.ok else "NOT valid")
    common.say(
        f"next: spak import {file}" if found.ok else "next: keep the file as evidence; ask for another"
    )
    return 0 if found.ok else 1


def _public(key: str) -> str:
    """The key in base64url. Raises: UsageError `keys.public`."""
    from spak.errors import UsageError
    from spak.policy import approval

    if approval.decoded(key, 32) is not None:
        return key
    text = common.decoded(common.read_input(Path(key), MAX_KEY_BYTES), Path(key)).strip()
    public = _of_pem(text) if text.startswith("-----") else text
    if approval.decoded(public, 32) is None:
        raise UsageError(
            "keys.public", f"{key} holds no public key of Ed25519",
            "give what `spak keys show` prints as public, or a PEM file",
        )  # fmt: skip
    return public


def _of_pem(text: str) -> str:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    from spak.policy import approval

    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        return ""
    return approval.encoded(key.public_bytes_raw()) if isinstance(key, Ed25519PublicKey) else ""
