"""`spak guard doctor`: every way in which a hook can refuse, fail or be mis-set, tried with the agent itself.

Takes the program of an agent; gives a row for each way and each of two modes. A trial is a project of its
own, a model on loopback that has the agent do one thing (spak.guard.scripted), and a look at the files
afterwards: the way is shut where the thing was not done. With hooks only the thing is a new file; behind
`spak guard` it is a file outside of the project and a change that the law forbids, so that the walls are
looked at and not the hook. A trial without any hook has to end open, or nothing was tried.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spak.errors import UsageError
from spak.files.scratch import Scratch
from spak.guard import hook_files
from spak.guard.agents import MODEL_OPTIONS
from spak.guard.answer import NAME
from spak.guard.hook_agents import AGENTS, HookAgent
from spak.guard.scripted import Scripted, ToolCall

State = Literal["shut", "open", "not_coverable"]
Mode = Literal["hooks", "guard"]
TRIAL_S, VERSION_S, STARTS_S = 180.0, 60.0, 60.0
MARK, KEPT, TEXT = "made.txt", "keep.txt", "kept\n"
LAW = f'forbidden(A) :- changed(A, "{KEPT}", _).\n'
SPAK = (sys.executable, "-c", "from spak.cli import main; main()")
"""Our own command, whatever the PATH is."""
_NO_NETWORK = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9",
               "NO_PROXY": "127.0.0.1,localhost", "DISABLE_AUTOUPDATER": "1"}  # fmt: skip


class Row(NamedTuple):
    """One way in one mode."""

    mode: Mode
    way: str
    state: State

    def to_json(self) -> dict[str, str]:
        """As the command prints it."""
        return {"name": f"{self.mode}: {self.way}", "state": self.state}


@dataclass(frozen=True, slots=True)
class Patient:
    """An agent that can be tried."""

    agent: HookAgent
    tool: str
    argument: str
    args: tuple[str, ...]
    trust: tuple[str, ...] = ()
    """Further arguments by which it trusts hooks that nobody reviewed."""


PATIENTS: Mapping[str, Patient] = {
    "claude": Patient(AGENTS["claude"], "Bash", "command", ("-p", "go", "--allowedTools", "Bash")),
    "codex": Patient(
        AGENTS["codex"], "exec_command", "cmd",
        ("exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "go"),
        ("--trust", "--dangerously-bypass-hook-trust"),
    ),
}  # fmt: skip
"""By the name of the program."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which the hook is set or behaves. `settings` writes the agent's file into a project."""

    name: str
    settings: Callable[[Patient, Path, int], str]
    """Of the patient, the project and the port of a server that refuses in odd ways; the file's text."""
    only: str = ""
    """The one agent that has it."""
    trusted: bool | None = True
    """Whether hooks are trusted; None: neither is the project."""
    types: bool = False
    """Whether the command is typed into a program that runs."""
    serves: bool = False
    """Whether a guard answers."""


_REFUSE = "echo no >&2; exit 2"
_ODD = "http://127.0.0.1:PORT"


def _json(decision: str, **more: str) -> str:
    about = {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}
    said = json.dumps({"hookSpecificOutput": about})
    return f"echo '{said}'"


def _set(
    command: str, *, event: str = "", strict: bool = True, more: Mapping[str, Any] = {}, **also: Any
) -> Callable[[Patient, Path, int], str]:
    """Settings with one hook, as strict as the agent can be made."""

    def text(patient: Patient, project: Path, port: int) -> str:
        hook: dict[str, Any] = {"type": "command", "command": command, "timeout": 10, **more, **also}
        if "url" in hook:
            del hook["command"]
            hook["url"] = str(hook["url"]).replace("PORT", str(port))
        if strict and patient.agent.closed is not None:
            hook[patient.agent.closed[0]] = patient.agent.closed[1]
        return json.dumps({"hooks": {event or patient.agent.before: [{"hooks": [hook]}]}})

    return text


def _ours(change: Callable[[str], str] = lambda line: line) -> Callable[[Patient, Path, int], str]:
    """The hooks that `spak guard hooks install` writes, with a change of the command."""

    def text(patient: Patient, project: Path, port: int) -> str:
        hook_files.install(patient.agent, project)
        settings = json.loads((project / patient.agent.file).read_text())
        hook = settings["hooks"][patient.agent.before][0]["hooks"][0]
        hook["command"] = change(hook["command"])
        return json.dumps(settings)

    return text


def _killed(line: str) -> str:
    return line.replace(line.partition(" -I ")[0], "sh -c 'kill -9 $$'", 1)


NO_HOOK = Way("no hook", lambda *_: "{}")
WAYS: tuple[Way, ...] = (
    Way("exits with 2 and a reason", _set(_REFUSE)),
    Way("exits with 2 without a reason", _set("exit 2")),
    Way("denies in JSON with a reason", _set(_json("deny", permissionDecisionReason="no"))),
    Way("denies in JSON without a reason", _set(_json("deny"))),
    Way("asks in JSON, and nobody is there", _set(_json("ask", permissionDecisionReason="?"))),
    Way("gives an unknown decision", _set(_json("never"))),
    Way("exits with 1", _set("exit 1")),
    Way("its program is missing", _set("/nonexistent/hook")),
    Way("runs into its time-out", _set("exec sleep 60", timeout=1)),
    Way("is killed", _set("kill -9 $$")),
    Way("prints something else", _set("echo good morning")),
    Way("prints broken JSON", _set("echo '{'")),
    Way("its option is misspelt", _set("exit 1", strict=False, onfailure="block"), only="claude"),
    Way("its type is misspelt", _set(_REFUSE, type="comand")),
    Way("its event is misspelt", _set(_REFUSE, event="PreToolUses")),
    Way("is asynchronous", _set(_REFUSE, more={"async": True})),
    Way("the settings file is broken", lambda *of: _set(_REFUSE)(*of)[:-1]),
    Way("HTTP: nobody listens", _set("", type="http", url="http://127.0.0.1:9/"), only="claude"),
    Way("HTTP: status 500", _set("", type="http", url=f"{_ODD}/500"), only="claude"),
    Way("HTTP: status 200 without a word", _set("", type="http", url=f"{_ODD}/200"), only="claude"),
    Way("is not trusted", _set(_REFUSE), only="codex", trusted=False),
    Way("the project is not trusted", _set(_REFUSE), only="codex", trusted=None),
    Way("is not asked about text for a program that runs",
        _set("grep -q touch && { echo no >&2; exit 2; } || exit 0"), only="codex", types=True),
    Way("ours: the guard asks a person, or denies", _ours(), serves=True),
    Way("ours: no guard runs", _ours()),
    Way("ours: its program is gone", _ours(lambda line: f"/gone{line}")),
    Way("ours: it is killed", _ours(_killed)),
)  # fmt: skip


def name_of(program: str) -> str:
    """The agent that the program is. Raises: UsageError `guard.agent`."""
    name = Path(program).name
    if name not in PATIENTS:
        known = " and ".join(PATIENTS)
        raise UsageError("guard.agent", f"the doctor does not know {name}", f"it tries {known}")
    return name


def version(program: Path) -> str:
    """What it says that it is. Raises: UsageError `guard.agent`."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=VERSION_S,
                              stdin=subprocess.DEVNULL)  # fmt: skip
        found = re.search(r"\d+(?:\.\d+)+\S*", done.stdout)
        if done.returncode == 0 and found:
            return found[0]
        said = (done.stderr or done.stdout).strip()[-200:]
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    raise UsageError("guard.agent", f"{program} does not tell its version: {said}", "install the agent")


def rows(
    program: Path, modes: Sequence[Mode] = ("hooks", "guard"), ways: Sequence[Way] = WAYS
) -> Iterator[Row]:
    """Each way in each mode, as soon as it is known.

    Raises: UsageError `guard.trial` where not even a trial without a hook is done."""
    patient = PATIENTS[name_of(program.name)]
    with _odd_server() as port:
        for mode in modes:
            trial = _hooks_only if mode == "hooks" else _guarded
            if trial(program, patient, NO_HOOK, port) != (True, mode == "guard"):
                what = f"{program.name} did not do what the scripted model had it do, without any hook"
                raise UsageError("guard.trial", what, "spak doctor says whether the sandbox works")
            for way in ways:
                if way.only in ("", patient.agent.name):
                    done, held = trial(program, patient, way, port)
                    yield Row(mode, way.name, _state(mode, way, done, held))


def _state(mode: Mode, way: Way, done: bool, held: bool) -> State:
    if mode == "guard":
        return "shut" if held else "open"
    if way.types and done:
        return "not_coverable"
    return "open" if done else "shut"


def _hooks_only(program: Path, patient: Patient, way: Way, port: int) -> tuple[bool, bool]:
    """Whether the file was made."""
    with _project(patient, way, port) as (home, project):
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), **_NO_NETWORK}
        with _model(patient, way, f"touch {MARK}") as model, _guard(project, home, way):
            options = [one.replace("http://127.0.0.1:{spak-port}/openai/v1", model.env["OPENAI_BASE_URL"])
                       for one in MODEL_OPTIONS.get(program.name, ())]  # fmt: skip
            _run([str(program), *options, *_args(patient, way)], project, env | model.env)
        return (project / MARK).exists(), False


def _guarded(program: Path, patient: Patient, way: Way, port: int) -> tuple[bool, bool]:
    """Whether what is ordinary came home, and whether what is forbidden and what is outside was held."""
    with _project(patient, way, port) as (home, project):
        (project / KEPT).write_text(TEXT)
        (project / "law.mg").write_text(LAW)
        (project / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
        outside = home.parent / MARK
        env = {**os.environ, "HOME": str(home)}
        commands = [f"touch {MARK}", f"rm -f {KEPT}; touch {outside} {home}/{MARK}"]
        with _model(patient, way, *commands) as model:
            line = [*SPAK, "guard", "--json", "--", str(program), *_args(patient, way)]
            said = _run(line, project, env | model.env)
        try:
            run = json.loads(said)["run"]
        except (ValueError, KeyError):
            return False, False
        _run([*SPAK, "apply", run], project, env)
        held = (project / KEPT).is_file() and (project / KEPT).read_text() == TEXT
        return (project / MARK).exists(), held and not outside.exists() and not (home / MARK).exists()


def _args(patient: Patient, way: Way) -> list[str]:
    trust = patient.trust if way.trusted else patient.trust[:1] if way.trusted is False else ()
    return [*patient.args[:-1], *trust, patient.args[-1]] if trust else list(patient.args)


@contextmanager
def _project(patient: Patient, way: Way, port: int) -> Iterator[tuple[Path, Path]]:
    """A home and a project with the way's settings; afterwards neither they nor their processes are left."""
    with Scratch("doctor") as top:
        home, project = top.resolve() / "home", top.resolve() / "project"
        home.mkdir()
        file = project / patient.agent.file
        file.parent.mkdir(parents=True)
        file.write_text(way.settings(patient, project, port))
        try:
            yield home, project
        finally:
            _end(str(home))


def _end(home: str) -> None:
    """Kill what still runs with this home: only a trial's processes have it."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"HOME={home}".encode() in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


@contextmanager
def _model(patient: Patient, way: Way, *commands: str) -> Iterator[Scripted]:
    calls = [ToolCall(patient.tool, {patient.argument: one}) for one in commands]
    if way.types:
        shell = {patient.argument: "bash --norc", "tty": True, "yield_time_ms": 500}
        calls = [ToolCall(patient.tool, shell)]
        seen: list[str] = []
        calls += [ToolCall("write_stdin", _typing(one, seen)) for one in commands]
    with Scripted(calls).serving() as model:
        yield model


def _typing(command: str, seen: list[str]) -> Callable[[str], Mapping[str, Any]]:
    """The arguments of `write_stdin`; `seen` keeps the number of the program that runs."""

    def args(results: str) -> Mapping[str, Any]:
        seen.extend(re.findall(r"session ID (\d+)", results))
        return {"session_id": int(seen[0]) if seen else 0, "chars": f"{command}\n", "yield_time_ms": 1000}

    return args


@contextmanager
def _guard(project: Path, home: Path, way: Way) -> Iterator[None]:
    """A guard for the hooks of the project, where the way has one."""
    if not way.serves:
        yield
        return
    env = {**os.environ, "HOME": str(home)}
    line = [*SPAK, "guard", "hooks", "serve"]
    with subprocess.Popen(line, cwd=project, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL) as guard:  # fmt: skip
        assert guard.stderr is not None
        try:
            guard.stderr.readline()  # its first line, once it listens
            if not (hook_files.folder(project) / NAME).exists():
                raise UsageError(
                    "guard.trial", "no guard of hooks starts here", "try: spak guard hooks serve"
                )
            yield
        finally:
            guard.send_signal(signal.SIGINT)
            guard.communicate(timeout=STARTS_S)


def _run(line: Sequence[str], folder: Path, env: Mapping[str, str]) -> str:
    """Run it to its end, or until it takes too long; gives its standard output."""
    with subprocess.Popen(line, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace",
                          start_new_session=True) as child:  # fmt: skip
        try:
            return child.communicate(timeout=TRIAL_S)[0]
        except subprocess.TimeoutExpired:
            return ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


@contextmanager
def _odd_server() -> Iterator[int]:
    """A server for hooks of the kind HTTP: answers with the status that the path names and without a word."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(int(self.path[1:] or 404))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is written."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
