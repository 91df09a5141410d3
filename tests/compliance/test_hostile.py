"""Runtimes that hang, die, lie or write nonsense: each gets a sentence, and the kit goes on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from process_kit import until
from spak.compliance import talk, tree
from spak.compliance.cases import cases
from spak.compliance.kit import judge, verdict_of
from spak.compliance.talk import Fault, Runtime

FIRST = next(case for case in cases() if case.number == 1)
BEGUN = """
import json, os, sys, time
order = json.loads(sys.stdin.readline())
work = order["state"] + "/work"
os.mkdir(work)
def send(**line):
    print(json.dumps(line), flush=True)
send(begun={"workspace": work, "log": work + "/log"})
"""
HOSTILE = {
    "says nothing for": "import signal; signal.pause()",
    "ends with 3: no such thing": "import sys; print('no such thing', file=sys.stderr); sys.exit(3)",
    "ends with 0": "",
    "ends with -9": "import os; os.kill(os.getpid(), 9)",
    "no JSON object: hello\\x1b[31m": "print('hello\\x1b[31m'); input()",
    "no JSON object: [1]": "print('[1]'); input()",
    "no JSON object: {{{": "print('{' * 100000); input()",
    "a line of more than": "import sys\nwhile True: sys.stdout.write('x' * 65536)",
    "closes its output": "import os, signal; os.close(1); signal.pause()",
    "instead of begun": "import json; print(json.dumps({'surprise': 1})); input()",
    "below that of the test": 'print(\'{"begun": {"workspace": "/", "log": "/etc/passwd"}}\')',
    "names a workspace that is not below": """
        import json
        print(json.dumps({"begun": {"workspace": chr(0) + chr(0xD800), "log": ""}})); input()
    """,
    "folders more than 200 deep": BEGUN
    + "os.chdir(work)\nfor _ in range(1500): os.mkdir('a'); os.chdir('a')\n"
    + "send(ask={'prompt': '', 'registers': {}}); input()",
    "more than 8388608 bytes": BEGUN
    + "for n in range(9): os.truncate(os.open(f'{work}/{n}', os.O_CREAT | os.O_WRONLY), 1 << 20)\n"
    + "send(ask={'prompt': '', 'registers': {}}); input()",
    "asks without a prompt": BEGUN + "send(ask={'prompt': 7})",
    "asks more than 60": BEGUN + "while True: send(ask={'prompt': '', 'registers': {}}); input()",
    "instead of ask": BEGUN + "send(answer=1)",
    "cannot be read": BEGUN
    + "for n in range(6000): open(f'{work}/{n}', 'w')\nsend(ask={'prompt': '', 'registers': {}}); input()",
    "ends with state 'succeeded' instead of failed": BEGUN + "send(end={'state': 'succeeded', 'code': ''})",
    "asks 0 times instead of 3": BEGUN + "send(end={'state': 'failed', 'code': 'WATCHDOG_LOOP'})",
}


def runtime(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", dedent(text))


@pytest.mark.parametrize(("why", "text"), HOSTILE.items(), ids=[name.replace(" ", "_") for name in HOSTILE])
def test_a_hostile_runtime_gets_a_sentence(why: str, text: str) -> None:
    wait_s = 1.0 if "says nothing" in why or "closes" in why else 60.0
    said = verdict_of(FIRST, lambda: Runtime(runtime(text), wait_s=wait_s))
    assert why in said and said.isprintable()


def test_a_runtime_that_reads_nothing_is_given_up() -> None:
    with (
        Runtime(runtime("import signal; signal.pause()"), wait_s=1.0) as started,
        pytest.raises(Fault, match="reads nothing"),
    ):
        started.send({"text": "x" * (1 << 20)})


def test_a_flood_of_errors_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import sys\nsys.stderr.write('x' * (8 << 20) + '\\nthe last line\\n'); sys.exit(1)"
    with Runtime(runtime(text)) as started, pytest.raises(Fault, match="the last line"):
        started.receive()
    assert len(started._errors) <= talk.TAIL


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_nothing_of_a_runtime_lives_on() -> None:
    text = (
        "import subprocess; p = subprocess.Popen(['sleep', '600']); print('{\"pid\": %d}' % p.pid); p.wait()"
    )
    with Runtime(runtime(text)) as started:
        pid = started.receive()["pid"]
    until(lambda: not alive(pid))


def test_a_program_that_is_not_there_fails_every_test() -> None:
    verdicts = judge(("/no/such/program",))
    assert len(verdicts) == len(cases())
    assert all("/no/such/program cannot be started" in verdict.why for verdict in verdicts)


def test_a_tree_follows_no_link_and_opens_no_pipe(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    top = tmp_path / "top"
    top.mkdir()
    (top / "link").symlink_to(outside)
    os.mkfifo(top / "pipe")
    (top / "file").write_bytes(b"f")
    found = tree.read(top)
    assert {path: kind for path, (kind, _, _) in found.items()} == {"link": "l", "pipe": "?", "file": "f"}
    assert tree.difference(found, {**found, "file": ("f", 0o777, b"f")}) == "file has other rights"
    assert tree.difference(found, {**found, "more": found["file"]}) == "more is new"
    assert tree.difference(found, {"link": found["link"], "pipe": found["pipe"]}) == "file is gone"
    (top / "large").write_bytes(b"x" * (tree.MOST_BYTES + 1))
    with pytest.raises(tree.TooLarge):
        tree.read(top)


@pytest.mark.parametrize("text", ["²", "9" * 6000])
def test_what_only_looks_like_a_number_is_not_counted(text: str) -> None:
    case = next(case for case in cases() if any(part.kind == "at_once" for part in case.parts))
    lies = BEGUN + (
        f"open(work + '/n', 'w').write({text!r})\n"
        "send(ask={'prompt': 'x', 'registers': {}}); input()\n"
        "send(end={'state': 'succeeded', 'code': ''})"
    )
    lies = lies.replace('"/work"', '"/work-" + order["task"]')
    said = verdict_of(case, lambda: Runtime(runtime(lies)))
    assert said and said.isprintable()
