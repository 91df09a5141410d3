"""`spak guard hooks`: the settings of agents, and the guard that answers their hooks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Background, Cli, Done
from spak.guard import hook_files
from spak.guard.answer import NAME
from spak.guard.hook_agents import AGENTS

pytestmark = pytest.mark.sandbox
SECRET = "abcdef123456secretvalue"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with a file, a file of secrets and a law."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text("total = 0\n")
    (folder / ".env").write_text(f"API_TOKEN={SECRET}\n")
    (folder / "law.mg").write_text('allowed_program("pytest").\npermitted(A) :- tool(A, /mcp__docs__find).\n')
    (folder / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    return folder


class Guard:
    """The resident guard of a project, and its hooks as an agent calls them."""

    def __init__(self, folder: Path, agent: str) -> None:
        self.folder, self.agent = folder, agent
        self.process = Background(folder, "guard", "hooks", "serve", "--json")
        self.process.until(lambda: answers(folder))

    def hook(self, kind: str, **event: Any) -> subprocess.CompletedProcess[str]:
        return hook(self.folder, self.agent, kind, json.dumps(event).encode())

    def before(self, call: str, tool: str, /, **args: Any) -> subprocess.CompletedProcess[str]:
        return self.hook("before", session_id="s", tool_use_id=call, tool_name=tool, tool_input=args,
                         cwd=str(self.folder))  # fmt: skip

    def after(self, call: str, tool: str, event: str = "PostToolUse") -> None:
        done = self.hook("after", session_id="s", tool_use_id=call, tool_name=tool, hook_event_name=event)
        assert (done.returncode, done.stdout) == (0, "")

    def end(self) -> Done:
        """Stop it as a person does."""
        self.process.kill(signal.SIGINT)
        out, err = self.process.process.communicate()
        return Done(self.process.process.returncode, out, err)


def answers(folder: Path) -> bool:
    """Whether a guard listens."""
    with socket.socket(socket.AF_UNIX) as line, suppress(OSError), chdir(hook_files.folder(folder)):
        line.connect(NAME)
        return True
    return False


def hook(folder: Path, agent: str, kind: str, event: bytes) -> subprocess.CompletedProcess[str]:
    """The installed command, started as agents do."""
    line = hook_files.command(AGENTS[agent], kind, folder)
    done = subprocess.run(["/bin/sh", "-c", line], input=event, capture_output=True, cwd="/")
    return subprocess.CompletedProcess(line, done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def guarding(folder: Path, agent: str) -> Iterator[Guard]:
    guard = Guard(folder, agent)
    try:
        yield guard
    finally:
        if guard.process.process.poll() is None:
            guard.process.kill(signal.SIGKILL)
            guard.process.process.communicate()


# ---- settings


@pytest.mark.parametrize("agent", sorted(AGENTS))
@pytest.mark.parametrize("indent", [2, 4])
def test_hooks_are_added_once_and_taken_away_exactly(cli: Cli, shop: Path, agent: str, indent: int) -> None:
    one = AGENTS[agent]
    other: dict[str, Any] = {"command": "lint é"}
    group = {"matcher": "Bash", "hooks": [{"type": "command", **other}]} if one.grouped else other
    mine = {"model": "x", "hooks": {one.before: [group], "other": []}, "more": {"a": [1, None]}}
    if not one.grouped:
        mine = {"version": 1, **mine}
    path = shop / one.file
    path.parent.mkdir()
    text = json.dumps(mine, indent=indent, ensure_ascii=False) + "\n"
    path.write_text(text)
    path.chmod(0o640)
    first = cli("guard", "hooks", "install", agent, "--json", folder=shop)
    assert (first.code, first.json["changed"]) == (0, True), first.err
    with_ours = path.read_bytes()
    found = json.loads(with_ours)
    assert found["hooks"][one.before][0] == group and found["model"] == "x"
    assert path.stat().st_mode & 0o777 == 0o640
    ours = found["hooks"][one.before][1]
    ours = ours["hooks"][0] if one.grouped else ours
    if one.closed is not None:
        assert ours[one.closed[0]] == one.closed[1]
    assert ours.get("timeout") == {"claude": 30, "codex": 30, "gemini": 30_000, "cursor": None}[agent]
    again = cli("guard", "hooks", "install", agent, "--json", folder=shop)
    assert not again.json["changed"] and path.read_bytes() == with_ours
    assert cli("guard", "hooks", "remove", agent, folder=shop).code == 0
    assert path.read_text() == text
    assert not cli("guard", "hooks", "remove", agent, "--json", folder=shop).json["changed"]


def test_a_project_without_settings_has_none_afterwards(cli: Cli, shop: Path) -> None:
    for agent, one in AGENTS.items():
        assert cli("guard", "hooks", "install", agent, folder=shop).code == 0
        assert hook_files.installed(one, shop)
        assert cli("guard", "hooks", "remove", agent, folder=shop).code == 0
        assert not (shop / one.file).parent.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"{", b"[]", b'{"hooks": []}', b'{"hooks": {"PreToolUse": {}}}', b'{"hooks": {"PreToolUse": ["x"]}}',
        b"[" * 100_000,
        b'{"hooks": {"PreToolUse": [{"hooks": "x"}]}}', b'{"a": 1, "a": 2}', b'{} // a comment',
        b'{"a": "\xff"}',
    ],
    ids=range(10),
)  # fmt: skip
def test_settings_that_nobody_can_read_are_left_alone(cli: Cli, shop: Path, data: bytes) -> None:
    path = shop / AGENTS["claude"].file
    path.parent.mkdir()
    path.write_bytes(data)
    for verb in ("install", "remove"):
        done = cli("guard", "hooks", verb, "claude", "--json", folder=shop)
        assert (done.code, done.error) == (2, "guard.settings")
    assert path.read_bytes() == data and list(path.parent.iterdir()) == [path]


# ---- answers


def test_a_session_is_judged_recorded_and_counted(cli: Cli, shop: Path) -> None:
    """By the law of the project, with what came of each answer, as far as it is known."""
    (shop / "sub").mkdir()
    cli("guard", "hooks", "install", "claude", folder=shop)
    with guarding(shop, "claude") as guard:
        said = json.loads(guard.hook("start", session_id="s").stdout)["systemMessage"]
        assert "witnesses" in said and "holds nothing" in said
        allowed = [
            ("1", "Bash", {"command": "cat cart.py | head -3"}),
            ("2", "Bash", {"command": "pytest -q"}),
            ("3", "Read", {"file_path": str(shop / "cart.py")}),
            ("4", "Edit", {"file_path": "cart.py", "old_string": "0", "new_string": "1"}),
            ("5", "mcp__docs__find", {"what": "x"}),
            ("6", "TodoWrite", {"todos": []}),
            ("7", "Write", {"file_path": str(shop / "new.py"), "content": f"x = '{SECRET}'\n"}),
        ]
        for call, tool, args in allowed[:6]:
            done = guard.before(call, tool, **args)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), (tool, done.stderr)
            guard.after(call, tool, "PostToolUseFailure" if call == "2" else "PostToolUse")
        asked = json.loads(guard.before("8", "Bash", command="touch x").stdout)["hookSpecificOutput"]
        assert asked["permissionDecision"] == "ask"
        assert 'allowed_program("touch").' in asked["permissionDecisionReason"]
        denied = [
            ("10", "Read", {"file_path": "/etc/passwd"}, "outside of the workspace"),
            ("11", "Read", {"file_path": ".env"}, "secret"),
            ("12", "Write", {"file_path": str(shop / ".git/hooks/x"), "content": ""}, "git"),
            ("13", "Edit", {"file_path": ".claude/settings.local.json"}, "guard.own_settings"),
            ("14", "Write", {"file_path": "sub/../law.mg", "content": ""}, "guard.own_settings"),
            ("15", "WebFetch", {"url": "https://example.org/"}, "example.org"),
            ("16", "mcp__docs__write", {}, "not known to the policy"),
            ("17", "recall", {"ref": 1}, "not known to the policy"),
            ("18", "model_request", {}, "not known to the policy"),
            ("19", "Bash", {"command": ["ls"]}, "gate.args"),
            ("20", "Bash", {}, "gate.args"),
        ]
        for call, tool, args, why in denied:
            done = guard.before(call, tool, **args)
            assert (done.returncode, done.stdout) == (2, ""), tool
            assert why in done.stderr, (tool, args, done.stderr)
        guard.after("10", "Read")  # it did it all the same
        guard.after("99", "Bash")  # nobody asked
        (shop / "law.mg").write_text("")  # a denied change that took place
        guard.hook("turn", session_id="s")
        assert guard.before("21", "Bash", command="ls").returncode == 0
        ended = guard.end()
    assert (ended.code, ended.json["state"]) == (0, "succeeded"), ended.err
    counts = {
        "asked": 19, "allowed": 7, "put_to_a_person": 1, "denied": 11, "obeyed": 16, "unknown": 1,
        "against": 2, "unasked": 1,
    }  # fmt: skip
    assert ended.json["witnessed"] == counts
    assert "holds nothing (claude: " in ended.err.splitlines()[0]
    name = ended.json["run"]
    for line in (("ledger", "verify", name), ("replay", name)):
        assert cli(*line, folder=shop).code == 0
    shown = cli("show", name, folder=shop).err
    assert "witnessed only: 19 asked: 7 allowed" in shown and "2 against" in shown
    assert cli("show", name, "--json", folder=shop).json["witnessed"] == counts


def test_values_of_secrets_are_in_no_record(cli: Cli, shop: Path) -> None:
    with guarding(shop, "claude") as guard:
        guard.before("1", "Bash", command=f"echo {SECRET}")
        guard.before("2", "Write", file_path="x.py", content="x" * 100_000 + SECRET)
        name = guard.end().json["run"]
    exported = cli("export", name, folder=shop).out
    assert SECRET not in exported and "redacted" in exported


def test_an_agent_that_cannot_ask_is_told_what_would_allow_it(cli: Cli, shop: Path) -> None:
    """And a patch is judged by all of its files, a line by the folder that it runs in."""
    patch = "*** Begin Patch\n*** Add File: new.py\n+x\n*** {}: ../out.py\n*** End Patch\n"
    with guarding(shop, "codex") as guard:
        done = guard.before("1", "Bash", command="make all")
        assert done.returncode == 2 and 'allowed_program("make").' in done.stderr
        assert guard.before("2", "apply_patch", command=patch.format("End of File")).returncode == 0
        assert guard.before("3", "apply_patch", command=patch.format("Update File")).returncode == 2
        assert guard.before("4", "apply_patch", command="no patch").returncode == 2
        event = {"session_id": "s", "tool_use_id": "5", "tool_name": "Bash", "cwd": "/etc"}
        assert guard.hook("before", **event, tool_input={"command": "cat passwd"}).returncode == 2
        assert guard.end().json["witnessed"]["denied"] == 4


def test_what_nobody_understands_is_denied(shop: Path) -> None:
    with guarding(shop, "claude") as guard:
        for event in (b"", b"{", b"[]", b"{}", b'{"tool_name": 1}', b"\xff", b"[" * 99_999, b" " * (50 << 20),
                      b'{"tool_name": "Bash", "tool_input": []}'):  # fmt: skip
            done = hook(shop, "claude", "before", event)
            assert done.returncode == 2 and done.stderr.startswith("spak: "), (event[:30], done.stderr)
        assert guard.before("1", "Bash", command="ls").returncode == 0


def test_calls_without_a_name_are_told_apart_by_what_they_are(shop: Path) -> None:
    """Of Gemini CLI; and Cursor wants JSON that says nothing."""
    with guarding(shop, "gemini") as guard:
        event = {
            "session_id": "s",
            "tool_name": "read_file",
            "tool_input": {"absolute_path": f"{shop}/cart.py"},
        }
        other = {**event, "tool_name": "run_shell_command", "tool_input": {"command": "make"}}
        assert guard.hook("before", **event).returncode == 0
        assert guard.hook("before", **other).returncode == 2
        guard.hook("after", **event)
        cursor = {
            "conversation_id": "c",
            "tool_use_id": "1",
            "tool_name": "Shell",
            "tool_input": {"command": "ls"},
        }
        done = hook(shop, "cursor", "before", json.dumps(cursor).encode())
        assert (done.returncode, done.stdout) == (0, "{}")
        counts = guard.end().json["witnessed"]
    assert (counts["asked"], counts["obeyed"], counts["unknown"]) == (3, 2, 1)


def test_a_law_about_what_is_witnessed_denies(shop: Path) -> None:
    (shop / "law.mg").write_text("forbidden(A) :- tool(A, /witnessed), spent(/steps, N), N > 2.\n")
    with guarding(shop, "claude") as guard:
        codes = [guard.before(str(number), "Bash", command="ls").returncode for number in range(4)]
    assert codes[0] == 0 and codes[-1] == 2


def test_a_hundred_calls_at_once_are_all_answered(shop: Path) -> None:
    with guarding(shop, "claude") as guard:
        codes: list[int] = []

        def ask(number: int) -> None:
            codes.append(guard.before(str(number), "Read", file_path="cart.py").returncode)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(100)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        counts = guard.end().json["witnessed"]
    assert counts["asked"] == counts["allowed"] == codes.count(0) > 60
    assert set(codes) <= {0, 2}


# ---- no guard


def test_without_a_guard_calls_are_denied_and_nothing_else_is(cli: Cli, shop: Path) -> None:
    """Never started, killed, and back again."""
    event = json.dumps({"tool_name": "Bash", "tool_input": {"command": "ls"}}).encode()
    assert hook(shop, "claude", "before", event).returncode == 2
    with guarding(shop, "claude") as guard:
        assert hook(shop, "claude", "before", event).returncode == 0
        os.killpg(guard.process.process.pid, signal.SIGKILL)
        guard.process.process.communicate()
        done = hook(shop, "claude", "before", event)
        assert done.returncode == 2 and "spak guard hooks serve" in done.stderr
        for kind in ("after", "turn", "start"):
            assert hook(shop, "claude", kind, event).returncode == 0
    with guarding(shop, "claude") as guard:
        assert hook(shop, "claude", "before", event).returncode == 0
        busy = cli("guard", "hooks", "serve", "--json", folder=shop)
        assert (busy.code, busy.error) == (2, "guard.busy")


@pytest.mark.parametrize("lost", ["python", "answer.py"])
def test_a_hook_whose_program_is_gone_denies(shop: Path, lost: str) -> None:
    line = hook_files.command(AGENTS["codex"], "before", shop).replace(f"{lost} ", f"{lost}-gone ", 1)
    done = subprocess.run(["/bin/sh", "-c", line], input=b"{}", capture_output=True)
    assert done.returncode == 2 and done.stderr


@pytest.mark.parametrize(
    "answer",
    [b"", b"spak-guard 0", b"spak-guard 0\n", b"spak-guard 1\n\n", b"spak-guard 0\nhalf",
     b"HTTP/1.1 200 OK\r\n", b"0\n\n", b"spak-guard 00\n\n"],
    ids=range(8),
)  # fmt: skip
def test_anything_but_a_clear_answer_denies(shop: Path, answer: bytes) -> None:
    folder = hook_files.folder(shop)
    folder.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        with chdir(folder):
            listener.bind(NAME)
        listener.listen()

        def serve() -> None:
            line, _ = listener.accept()
            with line:
                while line.recv(1 << 16):
                    pass
                line.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        done = hook(shop, "claude", "before", b"{}")
        thread.join()
    assert done.returncode == 2 and "does not answer" in done.stderr


def test_a_folder_with_a_long_name_has_a_guard_too(shop: Path) -> None:
    deep = shop / ("x" * 100) / ("y" * 100)
    deep.mkdir(parents=True)
    with guarding(deep, "claude") as guard:
        assert guard.before("1", "Bash", command="ls").returncode == 0
