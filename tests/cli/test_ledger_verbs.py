"""replay, ledger verify, export and import: of a run, of a file, of what was cut or changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli_calls import Cli
from spak.data import kernel_code


@pytest.fixture
def exported(cli: Cli, ended: str, tmp_path: Path) -> Path:
    assert cli("export", ended, "-o", "run.jsonl").code == 0
    return tmp_path / "run.jsonl"


# ---- replay --------------------------------------------------------------------------------------------


def test_replay_of_a_run_and_of_its_file_agree(cli: Cli, ended: str, exported: Path) -> None:
    shown = cli("show", "--json").json
    want = {
        "equal": True,
        "records": shown["records"],
        "summary_hash": shown["summary_hash"],
        "first_difference": None,
        "kernel_code": {"recorded": [kernel_code()], "here": kernel_code()},
    }
    for selector in (ended, "latest", "run.jsonl", str(exported)):
        done = cli("replay", selector, "--json")
        assert (done.code, done.json) == (0, want), selector


def test_replay_needs_neither_workspace_nor_store(cli: Cli, ended: str, runs: Path) -> None:
    shutil.rmtree(runs / ended / "workspace")
    shutil.rmtree(runs / ended / "store")
    assert cli("replay", ended, "--json").json["equal"] is True


def test_replay_names_the_first_decision_that_does_not_follow(cli: Cli, ended: str, runs: Path) -> None:
    """A ledger whose chain is whole, but where a commit says something else."""
    trace = runs / ended / "trace.jsonl"
    forge(trace, 4, lambda record: record["body"].update(signal="fail"))
    assert cli("ledger", "verify", ended).code == 0
    done = cli("replay", ended, "--json")
    assert (done.code, done.json["equal"]) == (1, False)
    difference = done.json["first_difference"]
    assert difference["seq"] == 4
    assert difference["found"]["body"]["signal"] == "fail"
    assert difference["expected"]["body"]["signal"] == "success"
    resumed = cli("resume", ended, "--json")
    assert (resumed.code, resumed.error) == (1, "ledger.diverged")


def test_replay_of_a_kernel_that_is_not_known(cli: Cli, ended: str, runs: Path) -> None:
    forge(runs / ended / "trace.jsonl", 0, lambda record: record["body"]["rules"].update(kernel=99))
    for verb in ("replay", "resume", "cancel"):
        done = cli(verb, ended, "--json")
        assert (done.code, done.error) == (1, "ledger.semantics"), verb


@pytest.mark.parametrize("body", [{}, {"rules": 3}, {"rules": {}}, {"rules": {"kernel": 1}}, {"host": []}])
def test_a_genesis_that_says_nothing(cli: Cli, ended: str, runs: Path, body: dict[str, object]) -> None:
    def empty(record: dict[str, dict[str, object]]) -> None:
        record["body"] = body

    forge(runs / ended / "trace.jsonl", 0, empty)
    for verb in ("replay", "show", "resume", "cancel", "report"):
        done = cli(verb, ended, "--json")
        assert (done.code, done.error) == (1, "ledger.genesis"), verb


# ---- verify --------------------------------------------------------------------------------------------


def test_verify_of_a_run_and_of_its_file(cli: Cli, ended: str, exported: Path) -> None:
    shown = cli("show", "--json").json
    want = {"ok": True, "records": shown["records"], "head": shown["chain_head"], "problems": []}
    for selector in (ended, "latest", "run.jsonl"):
        done = cli("ledger", "verify", selector, "--json")
        assert (done.code, done.json) == (0, want), selector


def test_a_torn_tail_is_a_warning(cli: Cli, ended: str, runs: Path) -> None:
    trace = runs / ended / "trace.jsonl"
    whole = trace.read_bytes()
    trace.write_bytes(whole[:-20])
    done = cli("ledger", "verify", ended, "--json")
    assert (done.code, done.json["ok"], done.json["records"]) == (0, True, whole.count(b"\n") - 1)
    assert [problem["code"] for problem in done.json["problems"]] == ["torn_tail"]
    assert cli("resume", ended, "--json").json["state"] == "succeeded"
    assert trace.read_bytes()[: len(whole)] == whole


def test_a_cut_export_is_not_whole_wherever_it_is_cut(cli: Cli, exported: Path, tmp_path: Path) -> None:
    data = exported.read_bytes()
    lines = data.splitlines(keepends=True)
    part = tmp_path / "part.jsonl"
    cuts = [0, 10, len(lines[0]), len(data) // 2, len(data) - len(lines[-1]), len(data) - 5, len(data) - 1]
    for cut in cuts:
        part.write_bytes(data[:cut])
        done = cli("ledger", "verify", "part.jsonl", "--json")
        assert (done.code, done.json["ok"]) == (1, False), cut
        assert {"footer", "genesis"} & {problem["code"] for problem in done.json["problems"]}
        refused = cli("import", "part.jsonl", "--runs-dir", "taken", "--json")
        assert (refused.code, refused.error) == (1, "ledger.import"), cut
        assert cli("runs", "--runs-dir", "taken", "--json").json == {"runs": []}


def test_a_cut_at_a_record_is_found_with_a_checkpoint(
    cli: Cli, ended: str, runs: Path, tmp_path: Path
) -> None:
    seen = cli("ledger", "verify", ended, "--json").json
    mark = tmp_path / "mark.json"
    mark.write_text(json.dumps({"run": ended, "count": seen["records"], "head": seen["head"]}))
    assert cli("ledger", "verify", ended, "--checkpoint", "mark.json").code == 0
    trace = runs / ended / "trace.jsonl"
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join(lines[:-1]))
    assert cli("ledger", "verify", ended).code == 0
    done = cli("ledger", "verify", ended, "--checkpoint", "mark.json", "--json")
    assert (done.code, done.json["problems"][0]["code"]) == (1, "checkpoint")


@pytest.mark.parametrize(
    ("text", "code", "error"),
    [(None, 2, "usage.file"), ("no json", 1, "ledger.checkpoint"), ("{}", 1, "ledger.checkpoint")],
)
def test_a_checkpoint_that_is_none(
    cli: Cli, ended: str, tmp_path: Path, text: str | None, code: int, error: str
) -> None:
    if text is not None:
        (tmp_path / "mark.json").write_text(text)
    done = cli("ledger", "verify", ended, "--checkpoint", "mark.json", "--json")
    assert (done.code, done.error) == (code, error)


def test_a_changed_byte_is_named_by_everyone(cli: Cli, ended: str, exported: Path, runs: Path) -> None:
    for path in (runs / ended / "trace.jsonl", exported):
        lines = path.read_bytes().splitlines(keepends=True)
        lines[4] = lines[4].replace(b'"at":1', b'"at":2', 1)
        path.write_bytes(b"".join(lines))
    for verb in ("resume", "show", "replay", "export", "report", "cancel", "step"):
        done = cli(verb, ended, "--json", *(("-o", "x") if verb in ("export", "report") else ()))
        assert (done.code, done.error) == (1, "ledger.tampered"), verb
        assert "record 4 " in done.json["error"]["message"]
    done = cli("replay", "run.jsonl", "--json")
    assert (done.code, done.error) == (1, "ledger.tampered")
    assert "record 4 " in done.json["error"]["message"]
    for selector in (ended, "run.jsonl"):
        done = cli("ledger", "verify", selector, "--json")
        assert (done.code, done.json["problems"][0]["seq"]) == (1, 4), selector
    refused = cli("import", "run.jsonl", "--runs-dir", "taken", "--json")
    assert (refused.code, refused.error) == (1, "ledger.import")


# ---- export and import ---------------------------------------------------------------------------------


def test_there_and_back_is_the_same_bytes(cli: Cli, ended: str, exported: Path, runs: Path) -> None:
    done = cli("import", "run.jsonl", "--runs-dir", "taken", "--json")
    assert (done.code, done.json) == (0, {"run": ended, "file": "run.jsonl"})
    taken = runs.parent.parent / "taken" / ended
    assert (taken / "trace.jsonl").read_bytes() == (runs / ended / "trace.jsonl").read_bytes()
    assert cli("export", ended, "--runs-dir", "taken").out.encode() == exported.read_bytes()
    for verb in ("replay", "show", "resume", "report"):
        assert cli(verb, ended, "--runs-dir", "taken", "--json").code == 0, verb
    assert cli("ledger", "verify", ended, "--runs-dir", "taken").code == 0
    assert cli("import", "run.jsonl", "--runs-dir", "taken").code == 0


def test_what_an_export_says(cli: Cli, ended: str, exported: Path) -> None:
    shown = cli("show", "--json").json
    done = cli("export", "-o", "again.jsonl", "--json").json
    footer = json.loads(exported.read_bytes().splitlines()[-1])
    assert done == {
        "run": ended,
        "count": shown["records"],
        "head": shown["chain_head"],
        "blobs": footer["blobs"],
        "file": "again.jsonl",
        "holds": {"files": 0, "secrets": []},
    }


@pytest.mark.parametrize("shape", ["events", "aep", "items", "steps"])
def test_a_run_in_the_shapes_of_others(cli: Cli, ended: str, shape: str, tmp_path: Path, runs: Path) -> None:
    before = (runs / ended / "trace.jsonl").read_bytes()
    lines = [json.loads(line) for line in cli("export", ended, "--as", shape).out.splitlines()]
    assert lines and all(isinstance(line, dict) for line in lines)
    assert cli("export", ended, "--as", shape, "-o", "-").out == cli("export", ended, "--as", shape).out
    about = {"run": ended, "as": shape, "count": len(lines)}
    assert cli("export", ended, "--as", shape, "--json").json == {**about, "lines": lines}
    done = cli("export", ended, "--as", shape, "-o", "other.jsonl", "--json")
    assert done.json == {**about, "file": "other.jsonl"}
    assert [json.loads(line) for line in (tmp_path / "other.jsonl").read_text().splitlines()] == lines
    assert (runs / ended / "trace.jsonl").read_bytes() == before
    assert cli("import", "other.jsonl", "--json").code != 0, "such a file is no ledger"


def test_shapes_of_a_run_that_waits_and_of_one_that_is_broken(cli: Cli, waiting: str, runs: Path) -> None:
    last = json.loads(cli("export", "--as", "events").out.splitlines()[-1])
    assert (last["type"], last["status"], last["response"]) == ("llm.query", "waiting", None)
    assert cli("export", "--as", "nonsense", "--json").code == 2
    trace = runs / waiting / "trace.jsonl"
    trace.write_bytes(trace.read_bytes().replace(b'"signal":"success"', b'"signal":"failure"', 1))
    done = cli("export", "--as", "aep", "-o", "x.jsonl", "--json")
    assert (done.code, done.error) == (1, "ledger.tampered")
    assert not (runs.parent.parent / "x.jsonl").exists()


def test_an_import_does_not_overwrite_another_run(cli: Cli, ended: str, exported: Path, runs: Path) -> None:
    trace = runs / ended / "trace.jsonl"
    shorter = b"".join(trace.read_bytes().splitlines(keepends=True)[:-1])
    trace.write_bytes(shorter)
    done = cli("import", "run.jsonl", "--json")
    assert (done.code, done.error) == (1, "ledger.exists")
    assert trace.read_bytes() == shorter


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\x00\xff" * 500, b"{}\n", b'{"footer":1}\n', b"not json\n"]
)
def test_files_that_are_no_export(cli: Cli, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.jsonl").write_bytes(content)
    assert cli("import", "odd.jsonl", "--json").error == "ledger.import"
    assert cli("replay", "odd.jsonl", "--json").code == 1
    assert cli("ledger", "verify", "odd.jsonl", "--json").json["ok"] is False


def test_paths_that_cannot_be_read_or_written(cli: Cli, ended: str, tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    for verb in (("import",), ("replay",), ("ledger", "verify")):
        for path in ("missing.jsonl", "folder.jsonl"):
            done = cli(*verb, path, "--json")
            assert (done.code, done.error) == (2, "usage.file"), (verb, path)
    for output in ("folder.jsonl", "missing/run.jsonl"):
        done = cli("export", ended, "-o", output, "--json")
        assert (done.code, done.error) == (2, "usage.file"), output
    assert not list(tmp_path.glob("*.part"))
    assert cli("export", ended, "--json").error == "usage.arguments"


def test_a_blob_that_is_gone_or_changed(cli: Cli, tmp_path: Path, runs: Path) -> None:
    (tmp_path / "long.spak").write_text(
        'task Long { step a: tool.run { cmd: "seq 9000" output_var: all }\n'
        '  step b: tool.write_file { path: "all.txt" content: all } }'
    )
    done = cli("run", "long.spak", "--json")
    assert done.code == 0
    run = done.json["run"]
    assert cli("ledger", "verify", run).code == 0
    blob = next(path for path in (runs / run / "blobs").rglob("*") if path.is_file())
    blob.write_bytes(b"something else")
    done = cli("ledger", "verify", run, "--json")
    assert (done.code, done.json["problems"][0]["code"]) == (1, "blob")
    assert cli("export", run, "-o", "x.jsonl", "--json").error == "ledger.blob"
    blob.unlink()
    done = cli("ledger", "verify", run, "--json")
    assert (done.code, done.json["problems"][0]["code"]) == (1, "blob")


# ---- a ledger with another content and a whole chain ---------------------------------------------------


def forge(trace: Path, seq: int, change: object) -> None:
    from spak import canon
    from spak.records import decode, place

    head, lines = canon.ZERO, []
    for line in trace.read_bytes().splitlines(keepends=True):
        value = json.loads(line)
        record = decode(line)
        if value["seq"] == seq:
            change(value)  # type: ignore[operator]
            record = record._replace(body=value["body"])
        record, text = place(record, record.seq, head)
        head = record.hash
        lines.append(text)
    trace.write_bytes(b"".join(lines))


def test_an_unfinished_run_goes_on_where_it_is_imported(cli: Cli, waiting: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    assert cli("export", waiting, "-o", "run.jsonl").code == 0
    assert cli("ledger", "verify", "run.jsonl").code == 0
    assert cli("import", "run.jsonl", "--runs-dir", "there").code == 0
    done = cli("step", waiting, "--answer", "word", "--runs-dir", "there", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert (tmp_path / "there" / waiting / "workspace" / "word.txt").read_text() == "word"
    assert (tmp_path / "there" / waiting / "workspace" / "before.txt").exists()


def test_an_export_without_its_store_is_whole_and_says_so(cli: Cli, waiting: str, runs: Path) -> None:
    (runs / waiting / "store" / "pack").write_bytes(b"no pack")
    done = cli("export", waiting, "-o", "run.jsonl")
    assert done.code == 0 and "files of the run are not in the export" in done.err
    assert cli("ledger", "verify", "run.jsonl").code == 0


def test_an_export_says_what_it_holds(cli: Cli, waiting: str, runs: Path) -> None:
    """One of a run that goes on has its files as they are, and those of secrets are named."""
    assert cli("export", waiting, "-o", "run.jsonl", "--json").json["holds"] == {"files": 1, "secrets": []}
    assert "1 file of the workspace" in cli("export", waiting, "-o", "run.jsonl").err
    assert cli("step", waiting, "--answer", "word", "--json").code == 0
    done = cli("export", waiting, "-o", "run.jsonl")
    assert "prompts, answers and outputs whole" in done.err and "of the workspace" not in done.err
