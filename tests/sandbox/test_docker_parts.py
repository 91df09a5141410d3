"""The parts of the docker launcher that need no engine: bytes, host configuration, why an engine
cannot be used. `Engine` is a recording stand-in for the engine's HTTP API.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socketserver
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from process_kit import WAIT_S
from spak import config, data
from spak.errors import UnavailableError
from spak.ports import MIB, Job, Limits
from spak.sandbox import LAUNCHERS, Docker, Gpu, docker, docker_engine, docker_wire, images, slots
from spak.sandbox.docker_wire import Frames, Held, report
from spak.sandbox.streams import Collector

# ---- bytes

pieces = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=8)


@given(pieces, st.lists(st.integers(1, 30), max_size=20))
def test_frames_come_whole_however_they_are_cut(sent: list[tuple[int, bytes]], cuts: list[int]) -> None:
    stream = b"".join(struct.pack(">BxxxI", number, len(piece)) + piece for number, piece in sent)
    frames, got = Frames(), {1: b"", 2: b""}
    for size in [*cuts, len(stream)]:
        for number, piece in frames.feed(stream[:size]):
            got[number] += piece
        stream = stream[size:]
    for number in (1, 2):
        assert got[number] == b"".join(piece for which, piece in sent if which == number)


@given(st.lists(st.binary(max_size=90), max_size=8))
def test_the_last_bytes_are_held_back(chunks: list[bytes]) -> None:
    collector = Collector(MIB)
    held = Held(collector)
    for chunk in chunks:
        held.feed(chunk)
    whole = b"".join(chunks)
    assert held.last == whole[-docker_wire.TRAILER :]
    assert collector.stream().data == whole[: -docker_wire.TRAILER]
    held.let_go()
    assert collector.stream().data == whole


NONCE = "f" * 32


@pytest.mark.parametrize(
    "text", ["", NONCE, f"{'e' * 32} x 0 0 0", f"{NONCE} q 0 0 0", f"{NONCE} x 0 0", f"{NONCE} x 0 0 0 0"]
)
def test_words_that_are_not_the_guests(text: str) -> None:
    assert report(text.ljust(64).encode(), NONCE) is None
    assert report(f"{NONCE} x 0 0 0".encode(), NONCE) is None


def test_the_guests_words() -> None:
    found = report(f"{NONCE} s 9 1234 1".ljust(64).encode(), NONCE)
    assert found == docker_wire.Report("s", 9, 1234, True)


@pytest.fixture(scope="module")
def guest() -> Iterator[str]:
    """The guest, compiled for here: outside of a container it refuses what is malformed just as well."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/guest"
        line = [
            "gcc",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
            program,
            str(data.path(docker.GUEST)),
        ]
        subprocess.run(line, check=True)
        yield program


@pytest.mark.parametrize(
    "sent, why",
    [
        (b"", "cut off"),
        (struct.pack("<I", 100) + b"short", "cut off"),
        (struct.pack("<I", 0xFFFFFFFF), "too large"),
        (struct.pack("<I", 4) + b"1234", "malformed"),
        (docker_wire.pack([], {}, Limits(), 9, NONCE, [], []), "empty"),
        (struct.pack("<I", 60) + NONCE.encode() + bytes(24) + struct.pack("<I", 0xFFFFFF), "malformed"),
    ],
    ids=["nothing", "short", "huge", "odd", "no command", "list"],
)
def test_the_guest_refuses_what_is_no_job(guest: str, sent: bytes, why: str) -> None:
    done = subprocess.run([guest, "step"], input=sent, capture_output=True, timeout=WAIT_S, check=False)
    assert done.returncode == 125 and why in done.stderr.decode()


def test_the_guest_holds_as_long_as_it_is_held(guest: str) -> None:
    with subprocess.Popen([guest, "hold"], stdin=subprocess.PIPE) as held:
        with pytest.raises(subprocess.TimeoutExpired):
            held.wait(0.2)
        assert held.stdin is not None
        held.stdin.close()
        assert held.wait(WAIT_S) == 0
    assert subprocess.run([guest], capture_output=True, check=False).returncode == 125


# ---- what an engine is asked for


def body(**more: Any) -> dict[str, Any]:
    return docker_engine.container(
        "sha256:1", "64900:64900", Path("/srv/ws"), True, (Path("/opt/b"), Path("/opt/a")), 256 * MIB, 40,
        {docker_engine.LABEL: "me"}, more,
    )  # fmt: skip


def test_every_hardening_setting() -> None:
    host = body()["HostConfig"]
    assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"] and host["SecurityOpt"] == ["no-new-privileges"]
    assert host["Memory"] == host["MemorySwap"] == 256 * MIB and host["PidsLimit"] == 40
    assert host["LogConfig"] == {"Type": "none"} and host["AutoRemove"] is True
    assert host["IpcMode"] == host["CgroupnsMode"] == "private"
    assert "size=67108864" in host["Tmpfs"]["/tmp"] and "nosuid" in host["Tmpfs"]["/tmp"]
    assert "/sys" in host["MaskedPaths"] and "/proc/sys" in host["ReadonlyPaths"]
    forbidden = {
        "Privileged",
        "CapAdd",
        "PidMode",
        "UTSMode",
        "Devices",
        "Binds",
        "PortBindings",
        "UsernsMode",
    }
    assert not forbidden & set(host)
    assert body()["User"] == "64900:64900" and body()["OpenStdin"] and body()["StdinOnce"]


def test_only_the_workspace_can_be_written() -> None:
    mounts = body()["HostConfig"]["Mounts"]
    assert [(one["Target"], one["ReadOnly"]) for one in mounts] == [
        ("/ws", False), ("/opt/a", True), ("/opt/b", True)
    ]  # fmt: skip
    assert not any("docker.sock" in one["Source"] for one in mounts)


def test_the_workspace_is_also_at_the_path_of_the_folder_that_it_is_a_copy_of() -> None:
    shown = (("/home/u/p/venv", "venv", False), ("/srv/ws/venv/.cache", "venv/.cache", True))
    made = docker_engine.container(
        "sha256:1", "64900:64900", Path("/srv/ws"), True, (), 256 * MIB, 40, {}, {}, False,
        [("venv/.env", False), ("keys", True)], Path("/notice"), "/home/u/p", shown,
    )["HostConfig"]  # fmt: skip
    found = {one["Target"]: (one["Source"], one["ReadOnly"]) for one in made["Mounts"]}
    for top in ("/ws", "/home/u/p"):
        assert found[top] == ("/srv/ws", False)
        assert found[f"{top}/venv"] == ("/home/u/p/venv", True)
        assert found[f"{top}/venv/.cache"] == ("/srv/ws/venv/.cache", False)
        assert found[f"{top}/venv/.env"] == ("/notice", True) and f"{top}/keys" in made["Tmpfs"]


def test_a_closed_repository_is_a_mount_of_its_own() -> None:
    mounts = docker_engine.container(
        "sha256:1", "64900:64900", Path("/srv/ws"), True, (), 256 * MIB, 40, {}, {}, True
    )["HostConfig"]["Mounts"]
    assert [(one["Source"], one["Target"], one["ReadOnly"]) for one in mounts] == [
        ("/srv/ws", "/ws", False), ("/srv/ws/.git", "/ws/.git", True)
    ]  # fmt: skip


class Engine(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers as an engine does up to the start of a container, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self, path: str, **facts: Any) -> None:
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.facts = {"ApiVersion": "1.41", "image": True, "start": "no such device", **facts}
        super().__init__(path, _Answers)

    def answer(self, verb: str, path: str, asked: dict[str, Any]) -> tuple[int, Any]:
        self.asked.append((verb, path, asked))
        labels = {docker_engine.GUEST_LABEL: docker.guest_hash()}
        name = path.partition("?")[0]
        if name.endswith("/version"):
            return 200, {"ApiVersion": self.facts["ApiVersion"]}
        if name.endswith("/info"):
            usual = {
                "SecurityOptions": ["name=seccomp,profile=default"],
                "ServerVersion": "20.10",
                "OSType": "linux",
            }
            return 200, {**usual, **self.facts.get("info", {})}
        if "/images/" in name:
            found = {"Id": "sha256:0123456789abcdef", "Config": {"Labels": labels}}
            return (200, found) if self.facts["image"] else (404, {"message": "No such image"})
        if name.endswith("/containers/json"):
            return 200, []
        if name.endswith("/containers/create"):
            return 201, {"Id": "c0ffee", "Warnings": []}
        if name.endswith("/start"):
            return 500, {"message": self.facts["start"]}
        return 200, {}

    def of(self, ending: str) -> list[dict[str, Any]]:
        return [asked for _, path, asked in self.asked if path.partition("?")[0].endswith(ending)]


class _Answers(socketserver.StreamRequestHandler):
    server: Engine

    def handle(self) -> None:
        while line := self.rfile.readline().decode().split():
            head = {}
            while (row := self.rfile.readline().decode().strip()) != "":
                name, _, value = row.partition(":")
                head[name.lower()] = value.strip()
            content = self.rfile.read(int(head.get("content-length", 0)))
            code, found = self.server.answer(line[0], line[1], json.loads(content) if content else {})
            text = json.dumps(found).encode()
            self.wfile.write(
                b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % (code, len(text))
                + text
            )


@contextmanager
def engine(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> Iterator[Engine]:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/sock")
        with Engine(f"{folder}/sock", **facts) as found:
            threading.Thread(target=found.serve_forever, args=(0.02,), daemon=True).start()
            try:
                yield found
            finally:
                docker.leave()
                found.shutdown()


@pytest.fixture
def workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_the_engine_is_asked_for_a_device(monkeypatch: pytest.MonkeyPatch, workspace: Path) -> None:
    """As `docker run --gpus 1` asks; what an engine does then was never seen here."""
    no_toolkit = 'could not select device driver "" with capabilities: [[gpu]]'
    with engine(monkeypatch, start=no_toolkit) as found:
        launcher = Gpu()
        outcome = launcher.run(Job(("nvidia-smi",), workspace))
        assert outcome.status == "launcher" and "device driver" in outcome.detail
        (asked,) = found.of("/containers/create")
        assert asked["HostConfig"]["DeviceRequests"] == [
            {"Driver": "", "Count": 1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}
        ]
        assert asked["HostConfig"]["CapDrop"] == ["ALL"] and asked["HostConfig"]["NetworkMode"] == "none"
        assert any(docker.GPU_IMAGE in path for _, path, _ in found.asked)
        fault, _, mend = launcher.probe().partition("; to fix: ")
        assert "device driver" in fault and "NVIDIA's container toolkit" in mend
        assert ("DELETE", "c0ffee") in [
            (verb, path.split("/")[-1].partition("?")[0]) for verb, path, _ in found.asked
        ]


def test_no_device_without_asking(monkeypatch: pytest.MonkeyPatch, workspace: Path) -> None:
    with engine(monkeypatch) as found:
        assert Docker().run(Job(("true",), workspace)).status == "launcher"
        (asked,) = found.of("/containers/create")
        assert not {"DeviceRequests", "Devices", "Runtime"} & set(asked["HostConfig"])


ENGINES: list[tuple[dict[str, Any], str, str]] = [
    ({"ApiVersion": "1.40"}, "older than 1.41", "install Docker 20.10"),
    ({"image": False}, "no image", "spak sandbox build"),
    ({"info": {"OSType": "windows"}}, "no Linux containers", "Linux containers"),
    ({"info": {"SecurityOptions": ["name=rootless"]}}, "rootless", "system's engine"),
    ({"info": {"MemoryLimit": False}}, "cannot limit", "control groups"),
    ({"info": {"PidsLimit": False}}, "cannot limit", "control groups"),
]


@pytest.mark.parametrize("facts, why, mend", ENGINES, ids=[one[1] for one in ENGINES])
def test_engines_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], why: str, mend: str
) -> None:
    with engine(monkeypatch, **facts), pytest.raises(UnavailableError) as caught:
        Docker()
    assert caught.value.code == "unavailable.sandbox"
    assert why in caught.value.message and mend in caught.value.hint


@pytest.mark.parametrize("address", ["unix:///no/such/socket", "tcp://127.0.0.1:1", "odd://"])
@pytest.mark.parametrize("name", ["docker", "gpu", "gvisor"])
def test_no_engine_no_run(monkeypatch: pytest.MonkeyPatch, address: str, name: str) -> None:
    """Fail closed: what asks for a container never runs in anything weaker."""
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(UnavailableError) as caught:
        LAUNCHERS[name]()
    assert caught.value.code == "unavailable.sandbox" and caught.value.hint
    program: Any = SimpleNamespace(sandbox="DOCKER")
    with pytest.raises(UnavailableError):
        config.launcher(config.Settings(), program)


def test_an_engine_that_is_gone_is_told_in_words() -> None:
    gone = pytest.raises(docker_engine.EngineError, match="does not answer")
    with gone as told, docker_engine.engine_errors():
        raise requests.ConnectionError("Connection aborted.", ConnectionRefusedError(111, "refused"))
    assert "(" not in str(told.value)


def test_user_namespaces_of_the_engine_are_left_out(monkeypatch: pytest.MonkeyPatch, workspace: Path) -> None:
    facts = {"SecurityOptions": ["name=seccomp,profile=default", "name=userns"]}
    with engine(monkeypatch, info=facts) as found:
        Docker().run(Job(("true",), workspace))
        assert found.of("/containers/create")[0]["HostConfig"]["UsernsMode"] == "host"


# ---- images

STATUS = """\
installed\tbash\t5.2\tlibc6 (>= 2.36), base-files\t
installed\tlibc6\t2.36\tlibgcc-s1:any\t
installed\tlibgcc-s1\t12.2\tlibc6 (>= 2.36)\t
installed\tbase-files\t12\tawk\t
installed\tmawk\t1.3\tlibc6 | missing\tawk
config-files\tgone\t1\t\t
installed\talone\t1\tmissing | libc6\t
"""


def test_packages_come_with_what_they_need() -> None:
    found, missing = images.closure(STATUS, ["bash", "gone", "never"])
    assert found == {"base-files": "12", "bash": "5.2", "libc6": "2.36", "libgcc-s1": "12.2", "mawk": "1.3"}
    assert missing == ["gone", "never"]
    assert "libc6" in images.closure(STATUS, ["alone"])[0]


def test_the_images_files_agree_with_the_launcher() -> None:
    for folder in ("base", "gpu"):
        text = data.path(f"sandbox/{folder}/Dockerfile").read_text()
        assert re.search(r"^COPY guest /opt/spak/guest$", text, re.MULTILINE)
        assert f"USER {slots.FIRST}:{slots.FIRST}" in text and "RUN [" in text
    assert {"coreutils", "python3", "gcc"} <= set(images.wanted())


def test_building_without_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    with engine(monkeypatch):
        with pytest.raises(UnavailableError) as caught:
            images.build("host", gpu=True)
        assert caught.value.code == "unavailable.image" and "registry" in caught.value.message
        monkeypatch.setattr(images.shutil, "which", lambda name: None)
        with pytest.raises(UnavailableError) as caught:
            images.build("host")
        assert "gcc" in caught.value.message and "apt-get install" in caught.value.hint
        monkeypatch.setattr(images, "_files", lambda *given: None)
        for way, word in (("host", "Debian"), ("packages", "mmdebstrap")):
            with pytest.raises(UnavailableError) as caught:
                images.build(way)  # type: ignore[arg-type]
            assert word in caught.value.message and caught.value.hint


def test_the_engines_own_words_when_it_cannot_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        images, "_files", lambda context, folder: (context / "Dockerfile").write_text("FROM x\n")
    )
    with engine(monkeypatch, image=False), pytest.raises(UnavailableError) as caught:
        images.build("registry")
    assert caught.value.code == "unavailable.image"


def test_a_host_without_descriptors_says_nothing_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*words: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    monkeypatch.setattr(docker_engine.socket, "socket", short)
    with pytest.raises(UnavailableError) as caught:
        docker_engine.connect()
    assert caught.value.code == "unavailable.host"
