"""Files of secrets: no job sees them, and no record holds a value of theirs."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cli_kit import raw, spak
from spak.ledger.memory import MemoryBlobs
from spak.ports import Job, Measurement, Outcome, Subject
from spak.runner import Host
from spak.runner.live import Live
from spak.runner.measured import recorded
from spak.runner.secret_guard import Reader, SecretGuard, found_in
from spak.sandbox.masked import Masked
from spak.secrets.mask import masks
from spak.secrets.redact import Redactor
from spak.workspace import Workspace

PASSWORD = "correct horse/battery"
OTHER = "hunter22"
TREE = {
    ".env": f"PASSWORD='{PASSWORD}'\nDEBUG=true\n",
    ".env.example": "PASSWORD=example-only\n",
    "app/secrets.yaml": f"token: {OTHER}\n",
    "app/.aws/credentials": "[default]\nkey = of-the-cloud\n",
    "app/main.py": "print('hello')\n",
    ".git/id_rsa": "not looked at\n",
    "ca.pem": "-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEAzK2vRt9\n-----END CERTIFICATE-----\n",
}
PRIVATE_KEY = TREE["ca.pem"].replace("CERTIFICATE", "RSA PRIVATE KEY")
NAMES = {".env", "app/secrets.yaml", "app/.aws/credentials"}


def laid(folder: Path, tree: Mapping[str, str] = TREE) -> Path:
    for name, text in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@dataclass
class Notes:
    """A launcher that notes what it is to run."""

    jobs: list[Job] = field(default_factory=list)
    entry: Any = None

    def probe(self) -> str:
        return ""

    def run(self, job: Job) -> Outcome:
        self.jobs.append(job)
        return Outcome("exited")

    def start(self, job: Job, pass_fds: Any = (), seccomp_extra: bytes = b"") -> Any:
        self.jobs.append(job)


# ---- which files


def test_files_of_secrets_are_the_same_by_scan_and_by_walk(tmp_path: Path) -> None:
    below = {
        ".m2/settings.xml": "x",
        "app/.m2/settings.xml": "x",
        "env.bak": "x",
        "deploy/secrets.yml.j2": "x",
    }
    none = {".m2/repository/a.pom": "x", "settings.xml": "x", "app/env": "x", "app/tokens.py": "x"}
    laid(tmp_path / "ws", TREE | below | none)
    (tmp_path / "ws/.netrc").symlink_to("app/main.py")
    space = Workspace(tmp_path / "ws", tmp_path / "store")
    wanted = NAMES | {"ca.pem", *below}
    assert set(space.secrets.files()) == wanted
    space.snapshot()
    assert set(space.secrets.files()) == wanted
    (tmp_path / "ws/app/new.key.pem").write_text("x")
    assert set(space.secrets.files()) == wanted, "as the last scan saw it"
    assert set(space.secrets.files(fresh=True)) == wanted | {"app/new.key.pem"}
    space.begin("a")
    assert set(space.secrets.files()) == wanted | {"app/new.key.pem"}


def test_the_reader_leaves_out_public_keys_and_what_the_operator_shows(tmp_path: Path) -> None:
    laid(tmp_path)
    paths, values = Reader(tmp_path).read([*NAMES, "ca.pem", "gone.pem"])
    assert set(paths) == NAMES and {PASSWORD, OTHER, "of-the-cloud"} <= values
    paths, values = Reader(tmp_path, ["app/*.yaml"]).read(NAMES)
    assert set(paths) == NAMES - {"app/secrets.yaml"} and OTHER not in values


def test_copies_and_binary_keys_are_masked_and_their_values_known(tmp_path: Path) -> None:
    secrets = {
        "prod.env": "PASSWORD=of-production-1\n", ".envrc": "export TOKEN=of-the-folder-2\n",
        "app/.env~": "PASSWORD=of-the-editor-3\n", "id_rsa.bak": PRIVATE_KEY, "id_ed25519.old": PRIVATE_KEY,
        "server.pem.bak": PRIVATE_KEY, ".npmrc.save": "//r.example/:_authToken=of-npm-4\n",
        "app/credentials.json.orig": '{"key": "of-the-cloud-5"}', ".aws.bak/config": "key = of-the-cloud-6\n",
        "a/store.jks": "", "a/store.p12": "", "a/vault.kdbx": "", "a/id_rsa": "",
    }  # fmt: skip
    ordinary = {
        "environment.py": "x\n", "env.md": "x\n", ".env.sample": "A=b\n", "id_rsa.pub": "ssh-rsa AAAA\n",
        "ca.pem.bak": TREE["ca.pem"],
    }  # fmt: skip
    laid(tmp_path, {**secrets, **ordinary})
    for name in ("store.jks", "store.p12", "vault.kdbx", "id_rsa"):
        (tmp_path / "a" / name).write_bytes(b"0\x82\x04\xa3\x02\x01\0" + bytes(range(256)) * 4)
    hidden, values = found_in(tmp_path)
    assert set(hidden) == {path.replace(".aws.bak/config", ".aws.bak") for path in secrets}
    wanted = {
        "of-production-1",
        "of-the-folder-2",
        "of-the-editor-3",
        "of-npm-4",
        "of-the-cloud-5",
        "of-the-cloud-6",
    }
    assert wanted <= values and "MIIEowIBAAKCAQEAzK2vRt9" in values


def test_a_file_is_read_again_when_it_changed(tmp_path: Path) -> None:
    laid(tmp_path)
    reader = Reader(tmp_path)
    assert PASSWORD in reader.read([".env"])[1]
    (tmp_path / ".env").write_text("PASSWORD=another-one-now\n")
    assert reader.read([".env"])[1] >= {"another-one-now"}


def test_what_is_gone_is_forgotten(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    assert reader.read([]) == ((), set())
    laid(tmp_path)
    assert reader.read([".env"])[0] == (".env",)
    assert reader.contents() and PASSWORD in reader.read([".env"])[1]
    assert reader.read([]) == ((), set()) and reader.contents() == ()
    for number in range(3):  # public keys, which are no secrets
        (tmp_path / f"{number}.pem").write_text(
            "-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----\n"
        )
        assert reader.read([f"{number}.pem"]) == ((), set())
    assert reader._known == {}


def test_what_was_once_known_stays_known(tmp_path: Path) -> None:
    laid(tmp_path / "ws")
    guard = SecretGuard(Host(), Workspace(tmp_path / "ws", tmp_path / "store"))
    guard.look(fresh=True)
    (tmp_path / "ws/.env").rename(tmp_path / "ws/notes.txt")
    guard.look(fresh=True)
    assert guard.redactor is not None and PASSWORD not in guard.redactor.text(f"it is {PASSWORD}")


@pytest.mark.parametrize("again", [False, True])
def test_values_of_other_files_put_none_out_of_mind(tmp_path: Path, again: bool) -> None:
    space = Workspace(laid(tmp_path / "ws"), tmp_path / "store")
    guard = SecretGuard(Host(), space)
    guard.look(fresh=True)
    (tmp_path / "ws/a.pem").write_text("\n".join(f"k{n:05}" for n in range(2000)))
    guard = SecretGuard(Host(), space) if again else guard
    guard.look(fresh=True)
    assert PASSWORD not in guard.clean(f"it is {PASSWORD}")


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b"\x7fELF" + PASSWORD.encode(), False),
        (b"int main;", True),
        (b"\xff\0" + base64.b64encode(b"x" + PASSWORD.encode()), False),
        (b"\xff" + PASSWORD.encode().hex().encode(), False),
    ],
)
def test_a_measured_file_that_holds_a_value_is_not_kept(tmp_path: Path, data: bytes, kept: bool) -> None:
    guard = SecretGuard(Host(), Workspace(laid(tmp_path / "ws"), tmp_path / "store"))
    guard.look(fresh=True)
    seen = Measurement("measured", metrics={"ns": 5}, subject=Subject({"source": b"x", "binary": data}))
    found = guard.recordable(seen)
    assert (found is seen) is kept
    if not kept:
        assert found.status == "checked" and not found.subject.files and not found.metrics
        assert [check["code"] for check in found.checks if not check["ok"]] == ["secret"]


@pytest.mark.parametrize(
    "found",
    [
        Measurement("measured", metrics={f"{OTHER}_ns": 5, "value": 5}),
        Measurement("measured", metrics={"value": 5}, samples={OTHER.encode().hex(): [1]}),
        Measurement("measured", metrics={"value": 5}, pairs=({f"a{OTHER}": [1]},)),
    ],
)
def test_a_metric_whose_name_holds_a_value_is_not_recorded(tmp_path: Path, found: Measurement) -> None:
    guard = SecretGuard(Host(), Workspace(laid(tmp_path / "ws"), tmp_path / "store"))
    guard.look(fresh=True)
    kept = guard.recordable(found)
    assert [check["code"] for check in kept.checks] == ["secret"] and kept.status == "checked"
    assert not kept.metrics and not kept.samples and not kept.pairs
    assert OTHER not in str(kept) and OTHER.encode().hex() not in str(kept)


def test_names_of_checks_are_recorded_without_values(tmp_path: Path) -> None:
    """pytest names a case by its parameters; two names that become one are still two checks."""
    guard = SecretGuard(Host(), Workspace(laid(tmp_path / "ws"), tmp_path / "store"))
    guard.look(fresh=True)
    cases = [f"test:a[{OTHER}]", f"test:a[{PASSWORD}]"]
    checks = tuple({"name": name, "ok": False, "code": f"no {OTHER}", "detail": name} for name in cases)
    body, side = recorded("e", guard.recordable(Measurement("checked", checks)), MemoryBlobs({}), guard.clean)
    assert [check["name"] for check in body["checks"]] == ["test:a[[redacted:key]]"] * 2
    assert OTHER not in str((body, side)) and PASSWORD not in str((body, side))


# ---- masks


def test_folders_of_secrets_are_masked_whole() -> None:
    assert set(masks(sorted(NAMES))) == {".env", "app/secrets.yaml", "app/.aws"}
    assert set(masks(["app/.aws/a/b", "app/.aws/credentials", "app/.env"])) == {"app/.aws", "app/.env"}


def test_no_job_sees_a_file_of_secrets(tmp_path: Path) -> None:
    folder = laid(tmp_path / "ws")
    notes = Notes()
    guard = SecretGuard(Host(launcher=notes), Workspace(folder, tmp_path / "store"))  # type: ignore[arg-type]
    guard.look(fresh=True)
    launcher = guard.launcher()
    assert launcher is not None
    launcher.run(Job(("true",), folder))
    assert set(notes.jobs[0].masked) == {".env", "app/secrets.yaml", "app/.aws"}


def test_masks_follow_the_folder_of_the_job(tmp_path: Path) -> None:
    notes, folder = Notes(), laid(tmp_path / "ws")
    launcher = Masked(notes, folder, [".env", "app/.aws"])  # type: ignore[arg-type]
    launcher.run(Job(("true",), folder))
    launcher.start(Job(("true",), folder / "app"))
    launcher.run(Job(("true",), tmp_path))
    wanted = [(".env", "app/.aws"), (".aws",), ()]
    assert [job.masked for job in notes.jobs] == wanted


# ---- values


def coded(value: str) -> list[str]:
    data = value.encode()
    return [
        value, quote(value, safe=""), json.dumps(value)[1:-1], data.hex(), data.hex().upper(),
        *(base64.b64encode(b"x" * n + data).decode() for n in range(3)),
        base64.urlsafe_b64encode(data).decode(),
    ]  # fmt: skip


@pytest.mark.parametrize("before", ["", "é" * 3, "://"])
def test_values_are_taken_out_however_they_are_written(tmp_path: Path, before: str) -> None:
    _, values = found_in(laid(tmp_path))
    clean = Redactor().knowing(values)
    for value in (PASSWORD, "of-the-cloud"):
        for form in coded(value):
            inner = form[4:-4] if len(form) > 2 * len(value) else form
            assert inner not in clean.text(f"{before}{form} said the program"), form
    assert clean.text("DEBUG=true and example-only") == "DEBUG=true and example-only"
    assert clean.text(clean.text(f"a {OTHER} b")) == "a [redacted:key] b"


@pytest.mark.parametrize("value", ["redacted", "[redacted:key]", "ted:key]", "true", "------", "LOCALHOST"])
def test_what_cannot_be_kept_out_stops_no_run(value: str) -> None:
    clean = Redactor().knowing([value, "key]abc", "abc[redac"])
    assert clean.text(f"{value} abc[redac{value}key]abc")


def test_very_many_values_are_still_fast() -> None:
    clean = Redactor().knowing([f"value number {n} of many" for n in range(2000)])
    text = clean.text("value number 7 of many\n" * 2000)
    assert "number 7" not in text


def test_live_output_split_anywhere_shows_no_value() -> None:
    clean = Redactor().knowing([PASSWORD, OTHER])
    text = f"before {PASSWORD} between {OTHER}\nafter\n".encode()
    for at in range(len(text)):
        live = Live(clean)
        shown = []
        for piece in (text[:at], text[at:]):
            live.heard(2, piece)
            shown.append(live.look().text)
        assert not any(
            value in one for one in shown for value in (PASSWORD, OTHER, PASSWORD[:-1], OTHER[:-1])
        )
        assert shown[-1].endswith("after\n")


SPEC = """
AGENT Searcher LEVEL 5 {
  CONFIG { MODE full_auto }
  START -> look
  TASK look { GOAL "Look for it."
    step search: tool.run { cmd: "grep -rh PASSWORD ." on_fail: continue }
    step find: tool.run { cmd: "find . -name .env -exec cat {} +" on_fail: continue }
    step pack: tool.run { cmd: "tar cf packed.tar app" on_fail: continue }
    step list: tool.run { cmd: "grep -a PASSWORD packed.tar" on_fail: continue }
    step errors: tool.run { cmd: "python3 leak.py" on_fail: continue }
    step copied: tool.read_file { path: "copy.md" output_var: seen }
    step coded: tool.run { cmd: "base64 copy.md" on_fail: continue }
    step nested: tool.run { cmd: "python3 nest.py" on_fail: continue }
    VALIDATOR PyTest { paths: ["test_leak.py"] }
    NEXT { success -> named  fail -> named }
  }
  TASK named { GOAL "Name them."
    VALIDATOR PyTest { paths: ["test_names.py"] }
  }
}
"""


def test_no_record_of_a_run_holds_a_value(tmp_path: Path) -> None:
    tree = {
        ".env": f"PASSWORD={OTHER}-{OTHER}\n",
        "copy.md": f"PASSWORD={OTHER}-{OTHER}\n",
        "app/.env": f"PASSWORD={OTHER}-{OTHER}\n",
        "leak.py": "import sys; sys.exit(open('copy.md').read() * 3)\n",
        "backwards.txt": f"{OTHER}-{OTHER}"[::-1],
        "nest.py": "import os\nname = open('backwards.txt').read()[::-1] + '/.git'\nos.makedirs(name)\n"
        "open(name + '/config', 'w').write('[core]\\n fsmonitor = id\\n')\n",
        "test_names.py": "import pytest\nNAMES = [open('backwards.txt').read()[::-1]]\n"
        "@pytest.mark.parametrize('it', NAMES)\ndef test_it(it):\n    assert it\n",
        "test_leak.py": "def test_it():\n    assert open('.env').read().startswith('# masked')\n"
        "    assert open('copy.md').read() == ''\n",
    }
    laid(tmp_path / "ws", tree)
    (tmp_path / "a.spak").write_text(SPEC)
    code, found = spak(tmp_path, "run", "a.spak", "--workspace", "ws", "--json")
    assert code in (0, 1), found
    value = f"{OTHER}-{OTHER}"
    kept = tmp_path / ".spak/runs" / found["run"]
    exported = tmp_path / "out.jsonl"
    assert raw(tmp_path, "export", found["run"], "--output", str(exported)).returncode == 0
    shown = raw(tmp_path, "show", found["run"], "--json").stdout
    for form in coded(value):
        assert form not in shown and form not in exported.read_text()
        for file in kept.rglob("*"):
            if file.is_file() and not {"store", "workspace"} & set(file.relative_to(kept).parts):
                assert form.encode() not in file.read_bytes(), (form, file)
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    outs = [str(line["body"]["out"]) for line in lines if "out" in line.get("body", {})]
    assert sum("[redacted:key]" in out for out in outs) >= 4, outs
    assert not any(form in out for out in outs for form in coded(value))
    assert value.encode() not in (kept / "workspace/packed.tar").read_bytes()
    assert spak(tmp_path, "replay", found["run"], "--json")[0] == 0


def test_another_name_of_a_secret_file_is_masked_too(tmp_path: Path) -> None:
    folder = laid(tmp_path / "ws")
    (folder / "notes.txt").hardlink_to(folder / ".env")
    masked, values = found_in(folder)
    assert {".env", "notes.txt"} <= set(masked) and PASSWORD in values


def test_a_folder_called_secrets_keeps_all_but_code(tmp_path: Path) -> None:
    folder = laid(tmp_path / "ws", {"secrets/key": "hunter2-long\n", "secrets/__init__.py": "x = 1\n"})
    space = Workspace(folder, tmp_path / "store")
    assert set(space.secrets.files()) == {"secrets/key"}
    space.snapshot()
    assert set(space.secrets.files()) == {"secrets/key"}


def test_a_secret_stays_masked_where_a_folder_above_it_was_renamed(tmp_path: Path) -> None:
    folder = laid(tmp_path / "ws", {"secrets/key": "hunter2-long\n", "app/.env": "PASSWORD=hunter3-long\n"})
    guard = SecretGuard(Host(), Workspace(folder, tmp_path / "store"))
    guard.look(fresh=True)
    (folder / "secrets").rename(folder / "s2")
    (folder / "sub/.git").mkdir(parents=True)
    (folder / "app").rename(folder / "sub/.git/app")
    for _ in range(2):
        guard.look(fresh=True)
        assert {"s2/key", "sub/.git/app/.env"} <= set(guard._paths)
    (folder / "s2/key").unlink()
    (folder / "s2/key").write_text("another file\n")
    guard.look(fresh=True)
    assert "s2/key" not in guard._paths


MOVES = """
AGENT Mover LEVEL 5 {
  CONFIG { MODE full_auto }
  START -> look
  TASK look { GOAL "Move a folder, then read what is in it."
    step move: tool.run { cmd: "python3 move.py" on_fail: continue }
    step read: tool.run { cmd: "python3 read.py" on_fail: continue }
  }
}
"""


def test_a_job_sees_no_secret_in_a_folder_that_an_earlier_one_renamed(tmp_path: Path) -> None:
    tree = {
        "secrets/key": f"{OTHER}-{OTHER}\n",
        "move.py": "import os; os.rename('secrets', 's2')\n",
        "read.py": "print(' '.join(open('s2/key').read()))\n",
    }
    laid(tmp_path / "ws", tree)
    (tmp_path / "a.spak").write_text(MOVES)
    _, found = spak(tmp_path, "run", "a.spak", "--workspace", "ws", "--json")
    shown = raw(tmp_path, "show", found["run"], "--json").stdout
    trace = (tmp_path / ".spak/runs" / found["run"] / "trace.jsonl").read_text()
    assert "m a s k e d" in trace and " ".join(OTHER) not in trace + shown
