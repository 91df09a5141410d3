"""`spak ledger`: verify a run, all runs or a proof; write a signed checkpoint; prove a record."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from spak.ledger.file_log import FileLog
    from spak.ledger.note import Head, Note, Verifier
    from spak.ledger.proofs import Proved
    from spak.ledger.settings import Checkpoints
    from spak.ledger.verify import Checkpoint

_FILE = click.Path(path_type=Path)


@click.group()
def command() -> None:
    """Verify ledgers; sign checkpoints of them, and prove records."""


# ---- verify --------------------------------------------------------------------------------------------


@command.command("verify")
@click.argument("run", default="latest")
@click.option("--checkpoint", "files", multiple=True, type=_FILE, help="A checkpoint kept elsewhere.")
@click.option(
    "--all", "every", is_flag=True, help="Every run of the folder, and every run of the checkpoint."
)
@click.option("--proof", type=_FILE, help="What RUN is proved by, where its log is not here.")
@click.option("--key", multiple=True, metavar="KEY", help="The log's public key, or a file with it.")
@click.option("--witness", multiple=True, metavar="KEY", help="Of a witness that must have signed too.")
@common.runs_option
@common.json_option
def verify_command(
    run: str,
    files: tuple[Path, ...],
    every: bool,
    proof: Path | None,
    key: tuple[str, ...],
    witness: tuple[str, ...],
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Check that RUN (or an exported file, or a proof) is what was written, whole and in order."""
    from spak.cli import ledger_input

    keys = Keys(key, witness)
    if every:
        return _verify_all(common.runs_dir(runs_dir), [keys.head(path) for path in files], as_json)
    if ledger_input.is_file(run) and (text := _proof_text(run)) is not None:
        return _verify_proof(text, files, keys, as_json)
    marks: list[Checkpoint] = []
    if proof is not None:
        marks.append(_proved_mark(common.read_text(proof), keys))
    if ledger_input.is_file(run):
        from spak.ledger.verify import verify

        marks += _marks(files, keys, None, "")
        report = verify(ledger_input.open_file(run), exported=True, checkpoint=_one(marks))
    else:
        from spak.ledger.against import verify_run
        from spak.ledger.file_log import FileLog

        root, name = common.find_run(run, runs_dir)
        marks += _marks(files, keys, FileLog(root), name)
        report = verify_run(root / name, _one(marks))
    problems = [item.to_json() for item in report.problems]
    if as_json:
        common.emit({"ok": report.ok, "records": report.records, "head": report.head, "problems": problems})
        return 0 if report.ok else 1
    from spak.runner.views.report import plural

    for item in problems:
        common.say(f"record {item['seq']}: {item['message']} [{item['code']}]")
    common.say(
        f"{plural(report.records, 'record')}, head {report.head}: {'whole' if report.ok else 'NOT whole'}"
    )
    common.say(
        f"next: spak replay {run}" if report.ok else "next: keep the file as evidence; restore a backup"
    )
    return 0 if report.ok else 1


class Keys:
    """The public keys that a check trusts: those that were given, else the own key of the settings."""

    def __init__(self, given: Iterable[str], witnesses: Iterable[str]) -> None:
        self._given = tuple(given)
        self.witnesses = tuple(key_of(text) for text in witnesses)

    def of(self, note: Note) -> Verifier:
        """The key for a checkpoint. Raises: UsageError `usage.arguments` where there is none."""
        if not self._given:
            from spak import config

            chosen = config.settings().checkpoints
            if not chosen.log:
                raise UsageError(
                    "usage.arguments",
                    "a signed checkpoint is checked with the public key of its log",
                    "--key KEY, as `spak ledger checkpoint` printed it",
                )
            return _own(chosen)[0]
        keys = [key_of(text) for text in self._given]
        return next((key for key in keys if key.name == note.head().origin), keys[0])

    def head(self, path: Path) -> Head:
        """What a file says that is a signed checkpoint. Raises: LedgerError, UsageError."""
        from spak.ledger.note import read, trusted

        data = common.read_input(path)
        return trusted(data, self.of(read(data)), self.witnesses)[1]


def _marks(files: Iterable[Path], keys: Keys, log: FileLog | None, run: str) -> list[Checkpoint]:
    """What the files say of a run: unsigned objects of it, or signed checkpoints of its log.

    Raises: LedgerError `ledger.forked` where the log here is not the one that was signed;
    `ledger.not_covered` where a checkpoint does not have the run; UsageError.
    """
    from spak.ledger.against import histories, mark
    from spak.ledger.verify import read_checkpoint

    found, heads = [], []
    for path in files:
        if common.read_input(path).lstrip()[:1] == b"{":
            found.append(read_checkpoint(path))
            continue
        if log is None:
            raise UsageError(
                "usage.arguments",
                "a signed checkpoint names its runs in a log, and a file has none",
                "make a proof where the run is, and give it: spak ledger prove RUN; --proof FILE",
            )
        heads.append(keys.head(path))
        wanted = mark(log, run, heads[-1].size)
        if wanted is None and not list(histories(log, heads)):
            raise LedgerError(
                "ledger.not_covered",
                f"the checkpoint does not cover {run}: it was written later, or erased",
                "name a newer checkpoint",
            )
        found += [] if wanted is None else [wanted]
    if log is not None and (wrong := list(histories(log, heads))):
        raise LedgerError(
            "ledger.forked",
            wrong[0].message,
            "spak ledger verify --all --checkpoint FILE lists all that differs",
        )
    return found


def _one(marks: list[Checkpoint]) -> Checkpoint | None:
    """The furthest of them; the others must be of the same run and not contradict it."""
    if len({(item.count, item.head) for item in marks}) > 1 and len({item.count for item in marks}) == 1:
        raise LedgerError("ledger.forked", "two checkpoints differ in the same run", "keep both as evidence")
    return max(marks, key=lambda item: item.count, default=None)


def _verify_all(root: Path, heads: list[Head], as_json: bool) -> int:
    from spak.ledger.against import verify_all
    from spak.ledger.verify import WARNINGS
    from spak.runner.views.report import plural

    seen = verify_all(root, heads)
    ok = all(problem.code in WARNINGS for _, problem in seen.problems)
    problems = [
        {"run": run, "seq": item.seq, "code": item.code, "message": item.message}
        for run, item in seen.problems
    ]
    if as_json:
        counts = {
            "covered": seen.covered,
            "newer": seen.newer,
            "erased": list(seen.erased),
            "records": seen.records,
        }
        common.emit({"ok": ok, **counts, "problems": problems})
        return 0 if ok else 1
    for item in problems:
        where = f"{item['run']}, record {item['seq']}" if item["run"] else "log"
        common.say(f"{where}: {item['message']} [{item['code']}]")
    for run in seen.erased:
        common.say(f"{run}: erased on purpose, by its tombstone")
    common.say(
        f"{plural(seen.covered, 'run')} covered, {seen.newer} newer, {len(seen.erased)} erased, "
        f"{plural(seen.records, 'record')}: {'whole' if ok else 'NOT whole'}"
    )
    common.say(
        "next: spak ledger checkpoint" if ok else "next: keep the folder as evidence; restore a backup"
    )
    return 0 if ok else 1


# ---- proofs --------------------------------------------------------------------------------------------


@command.command("prove")
@click.argument("run", required=False)
@click.argument("seq", type=click.IntRange(min=0), required=False)
@click.option("--from", "earlier", type=_FILE, help="Prove instead that the log continues this checkpoint.")
@click.option("-o", "--output", type=_FILE, help="Write the proof there, not to standard output.")
@common.runs_option
@common.json_option
def prove_command(
    run: str | None,
    seq: int | None,
    earlier: Path | None,
    output: Path | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Prove that RUN, or its record SEQ, is in the last checkpoint."""
    if (run is None) == (earlier is None):
        raise UsageError("usage.arguments", "name a run, or --from CHECKPOINT", "spak ledger prove RUN SEQ")
    if run is not None:
        from spak.ledger.file_log import prove

        root, name = common.find_run(run, runs_dir)
        text = prove(root, name, seq)
    else:
        text = _consistency(common.runs_dir(runs_dir), common.read_input(Path(str(earlier))))
    if output is not None:
        output.write_text(text)
    if as_json:
        common.emit({"proof": text, "file": None if output is None else str(output)})
    elif output is None:
        common.out(text, nl=False)
    growth = "" if earlier is None else f" --checkpoint {earlier}"
    common.say(f"next: spak ledger verify {output or 'FILE'}{growth} --key KEY")
    return 0


def _consistency(root: Path, data: bytes) -> str:
    from spak.ledger.file_log import FileLog
    from spak.ledger.log import consistency
    from spak.ledger.note import read

    log = FileLog(root)
    note = log.signed()
    if note is None:
        raise LedgerError("ledger.not_covered", "there is no checkpoint yet", "spak ledger checkpoint")
    return consistency(log, read(data).head().size, note)


def _proof_text(selector: str) -> str | None:
    """The text of a file that is a proof; None for others. Raises: UsageError `usage.file`."""
    from spak.cli import ledger_input

    if selector == "-":
        return None
    first = next(ledger_input.open_file(selector), b"")
    proof = first.startswith((b"c2sp.org/tlog-proof@", b"old "))
    return common.read_text(Path(selector)) if proof else None


def _verify_proof(text: str, files: tuple[Path, ...], keys: Keys, as_json: bool) -> int:
    from spak.ledger.proofs import check_consistency

    if text.startswith("old "):
        if len(files) != 1:
            raise UsageError("usage.arguments", "name the earlier checkpoint", "--checkpoint FILE")
        earlier = keys.head(files[0])
        later = check_consistency(text, earlier, _key_in(text, keys), keys.witnesses)
        facts: dict[str, Any] = {"ok": True, "log": later.origin, "from": earlier.size, "to": later.size}
        line = f"the checkpoint of {later.size} leaves continues that of {earlier.size}"
    else:
        proved = _proved(text, keys)
        leaf = proved.leaf
        facts = {
            "ok": True, "log": proved.head.origin, "size": proved.head.size, "index": proved.index,
            "run": leaf.run, "count": leaf.count, "head": leaf.head, "erased": leaf.root is None,
            "seq": proved.seq, "line": proved.line.decode() if proved.seq is not None else None,
        }  # fmt: skip
        what = f"record {proved.seq} of {leaf.run}" if proved.seq is not None else leaf.run
        line = f"{what} is in the checkpoint of {proved.head.size} leaves of {proved.head.origin}"
    if as_json:
        common.emit(facts)
    else:
        common.say(line)
    return 0


def _proved(text: str, keys: Keys) -> Proved:
    from spak.ledger.proofs import check_inclusion

    return check_inclusion(text, _key_in(text, keys), keys.witnesses)


def _proved_mark(text: str, keys: Keys) -> Checkpoint:
    from spak.ledger.verify import Checkpoint

    leaf = _proved(text, keys).leaf
    return Checkpoint(leaf.run, leaf.count, leaf.head)


def _key_in(text: str, keys: Keys) -> Verifier:
    """The key for the checkpoint in a proof."""
    from spak.ledger.note import read

    return keys.of(read(text.partition("\n\n")[2].encode()))


def key_of(text: str) -> Verifier:
    """A public key, or the one in a file."""
    from spak.ledger.note import verifier

    return verifier(text if "+" in text else common.read_text(Path(text)))


# ---- checkpoint ----------------------------------------------------------------------------------------


@command.command("checkpoint")
@click.option("--to", multiple=True, metavar="PLACE", help="Where it goes: a folder, git+REMOTE or a URL.")
@click.option("--log", "name", metavar="NAME", help="The log's name, such as example.com/team.")
@click.option("--sign-with", metavar="NAME", help="The key that signs, one of `spak keys`.")
@click.option("--erased", multiple=True, metavar="RUN", help="A run that was removed on purpose.")
@common.runs_option
@common.json_option
def checkpoint_command(
    to: tuple[str, ...],
    name: str | None,
    sign_with: str | None,
    erased: tuple[str, ...],
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Sign what all runs are now, and write it where the store's writer cannot change it."""
    from dataclasses import replace

    from spak import config

    chosen = config.settings().checkpoints
    chosen = replace(chosen, log=name or chosen.log, key=sign_with or chosen.key, to=to or chosen.to)
    if not chosen.log or not chosen.to:
        raise UsageError(
            "usage.arguments",
            "a checkpoint needs a name of its log, and a place outside of the store",
            '[checkpoints] in spak.toml: log = "example.com/team", to = ["/mnt/evidence"]; or --log and --to',
        )
    root = common.runs_dir(runs_dir)
    for place in chosen.to:
        if Path(place.removeprefix("git+")).resolve().is_relative_to(root.resolve()):
            raise UsageError("usage.arguments", f"{place} is in the store", "name a place outside of it")
    with _held(root) as log:
        from spak.ledger.files import FileLedgers
        from spak.ledger.places import place as place_of
        from spak.ledger.publish import publish

        verifier, private = _own(chosen)
        wrong = log.update(FileLedgers(root), erased)
        token = os.environ.get(chosen.token_env, "") if chosen.token_env else ""
        places = [place_of(text, token) for text in chosen.to]
        made = publish(log, chosen.log, private, log.signed(), chosen.witnesses, places)
        log.keep(made.note)
    problems = [*wrong, *made.problems]
    head = made.note.head()
    if as_json:
        from spak.ledger.note import encoded

        common.emit(
            {
                "log": head.origin, "size": head.size, "root": encoded(head.root), "key": str(verifier),
                "places": made.places, "witnesses": made.witnesses, "checkpoint": made.note.text(),
                "problems": problems,
            }
        )  # fmt: skip
    else:
        common.out(made.note.text(), nl=False)
        for text in problems:
            common.say(f"problem: {text}")
        common.say(f"{head.size} leaves; written to {', '.join(made.places) or 'no place'}")
        common.say(f"the key to check it with: {verifier}")
    file = next((Path(place) / "latest.checkpoint" for place in made.places if Path(place).is_dir()), "FILE")
    again = "next: mend what is wrong and sign again: spak ledger checkpoint"
    common.say(f"next: spak ledger verify --all --checkpoint {file}" if made.places else again)
    return 1 if problems else 0


@contextmanager
def _held(root: Path) -> Iterator[FileLog]:
    from spak.ledger.file_log import FileLog

    if not root.is_dir():
        raise UsageError("usage.run", f"there are no runs in {root}", "start one: spak run FILE")
    log = FileLog(root)
    with log.held():
        yield log


def _own(chosen: Checkpoints) -> tuple[Verifier, bytes]:
    """The log's key, both halves. Raises: UsageError `keys.*`, LedgerError `ledger.key`."""
    from spak.cli import keys
    from spak.ledger.note import own_verifier

    private = keys.load(chosen.key or keys.usual_name()).private
    return own_verifier(chosen.log, private), private
