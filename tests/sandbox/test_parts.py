"""The parts of the launcher that need no sandbox: the filter, the slots, the groups, the kept output."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import tomllib
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak import data
from spak.errors import BugError
from spak.sandbox import cgroup, seccomp, slots
from spak.sandbox.streams import Collector

ROOT = os.geteuid() == 0
MACHINES = ("x86_64", "aarch64")
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026


# ---- shipped files


def test_shipped_files_are_found_and_missing_ones_named() -> None:
    assert data.path("sandbox/seccomp/x86_64.toml").is_file()
    with pytest.raises(BugError) as caught:
        data.path("sandbox/no-such-file")
    assert caught.value.code == "bug.data"


# ---- the filter


def decide(program: bytes, number: int, architecture: int, arguments: tuple[int, ...] = ()) -> int:
    """What the kernel would do: an interpreter of the few instructions in use."""
    words = struct.pack("=iIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    lines = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    while True:
        code, yes, no, constant = lines[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", words, constant)
            case 0x06:
                return int(constant)
            case 0x15:
                at += yes if value == constant else no
            case 0x25:
                at += yes if value > constant else no
            case 0x45:
                at += yes if value & constant else no
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_decides_as_its_list_says(machine: str) -> None:
    rules = tomllib.loads(data.path(f"sandbox/seccomp/{machine}.toml").read_text())
    program, own = seccomp.program(machine), rules["architecture"]
    assert len(program) % 8 == 0 and len(program) // 8 < 4096
    refused, looked_at = set(rules["refused"].values()), {rule["number"] for rule in rules["argument"]}
    absent = set(rules["absent"].values())
    assert not refused & looked_at and not absent & (refused | looked_at)
    for number in range(rules["last"] + 40):
        if number in looked_at:
            continue
        wanted = ALLOW
        if number in refused:
            wanted = EPERM
        elif number in absent or number > rules["last"]:
            wanted = ENOSYS
        assert decide(program, number, own) == wanted, number
    assert decide(program, 1, 0x40000003) == KILL  # 32-bit x86
    assert decide(program, 0x40000000 + 1, own) == ENOSYS  # x32
    assert decide(program, -1, own) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_looks_at_arguments(machine: str) -> None:
    rules = tomllib.loads(data.path(f"sandbox/seccomp/{machine}.toml").read_text())
    number = {rule["call"]: rule["number"] for rule in rules["argument"]}

    def of(call: str, *arguments: int) -> int:
        return decide(seccomp.program(machine), number[call], rules["architecture"], arguments)

    fork, thread = 17, 0x3D0F00
    assert of("clone", fork) == ALLOW and of("clone", thread) == ALLOW
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert of("clone", fork | bit) == EPERM and of("unshare", bit) == EPERM
    assert of("unshare", 0x80) == EPERM and of("unshare", 0x400) == ALLOW
    assert of("ioctl", 0, 0x5412) == EPERM and of("ioctl", 0, 0xABC0000541C) == EPERM
    assert of("ioctl", 0, 0x5413) == ALLOW
    for family, wanted in ((1, ALLOW), (2, ALLOW), (10, ALLOW), (16, ALLOW), (40, 0x50061), (17, 0x50061)):
        assert of("socket", family) == wanted


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("bits", [0o4000, 0o2000, 0o6755, 0o104755])
def test_no_call_makes_a_setuid_or_setgid_file(machine: str, bits: int) -> None:
    rules = tomllib.loads(data.path(f"sandbox/seccomp/{machine}.toml").read_text())
    number = {rule["call"]: rule["number"] for rule in rules["argument"]}

    def of(call: str, *arguments: int) -> int:
        return decide(seccomp.program(machine), number[call], rules["architecture"], arguments)

    plain, folder, file, create = 0o101755, -100, 3, 0o100 | 1
    calls = {
        "fchmod": (file,), "fchmodat": (folder, 9), "fchmodat2": (folder, 9), "mknodat": (folder, 9),
        "openat": (folder, 9, create),
    }  # fmt: skip
    if machine == "x86_64":
        calls |= {"chmod": (9,), "creat": (9,), "mknod": (9,), "open": (9, create)}
    for call, first in calls.items():
        first = tuple(one & 0xFFFFFFFF for one in first)
        assert of(call, *first, bits) == EPERM, call
        assert of(call, *first, 0xABC00000000 | bits) == EPERM, call
        assert of(call, *first, plain) == ALLOW and of(call, *first, 0o777) == ALLOW, call
    assert of("openat", 3, 9, 0o20000000 | 1, bits) == EPERM  # a file without a name yet
    assert of("openat", 3, 9, 0, bits) == ALLOW  # no file is made, and what stands there means nothing


@pytest.mark.parametrize(
    "machine, header",
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        ("aarch64", "/usr/include/asm-generic/unistd.h"),
    ],
)
def test_numbers_are_the_kernels(machine: str, header: str) -> None:
    path = Path(header)
    if not path.exists():  # another distribution's place, or another machine's headers
        path = Path("/usr/include/asm/unistd_64.h" if machine == "x86_64" else header)
    if not path.exists():
        pytest.skip(f"no kernel headers for {machine} here")
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text()))
    rules = tomllib.loads(data.path(f"sandbox/seccomp/{machine}.toml").read_text())
    mine = rules["refused"] | rules["absent"] | {rule["call"]: rule["number"] for rule in rules["argument"]}
    assert {name: number for name, number in mine.items() if int(known.get(name, number)) != number} == {}
    assert sum(name in known for name in mine) > 40


def test_both_lists_refuse_the_same_calls_where_both_have_them() -> None:
    x86, arm = (tomllib.loads(data.path(f"sandbox/seccomp/{m}.toml").read_text()) for m in MACHINES)
    only_x86 = {"uselib", "sysfs", "modify_ldt", "iopl", "ioperm", "create_module", "get_kernel_syms"}
    assert set(x86["refused"]) - set(arm["refused"]) == only_x86 | {"query_module"}
    assert set(arm["refused"]) <= set(x86["refused"])


# ---- kept output


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 64))
def test_head_and_tail_of_any_chunks(chunks: list[bytes], limit: int) -> None:
    collector = Collector(limit)
    for chunk in chunks:
        collector.feed(chunk)
    whole, stream = b"".join(chunks), collector.stream()
    head, tail = limit - limit // 2, limit // 2
    kept = whole if len(whole) <= limit else whole[:head] + whole[len(whole) - tail :]
    assert stream.data == kept and stream.size == len(whole)
    assert stream.truncated == (len(whole) > limit)
    assert stream.sha256 == urlsafe_b64encode(hashlib.sha256(whole).digest())[:43].decode()


# ---- control groups

OWN_V1 = "9:name=systemd:/\n4:memory:/outer/inner\n2:cpuacct:/outer\n0::/\n"
MOUNTS_V1 = """\
30 25 0:26 / {0} ro,nosuid shared:9 - tmpfs tmpfs ro
31 30 0:27 / {0}/unified rw shared:10 - cgroup2 cgroup2 rw
32 30 0:28 / {0}/memory rw shared:11 - cgroup cgroup rw,memory
33 30 0:29 / {0}/cpu,cpuacct rw shared:12 - cgroup cgroup rw,cpu,cpuacct
"""


def test_find_version_1(tmp_path: Path) -> None:
    memory, cpu = tmp_path / "memory/outer/inner", tmp_path / "cpu,cpuacct/outer"
    memory.mkdir(parents=True)
    cpu.mkdir(parents=True)
    found = cgroup.find(MOUNTS_V1.format(tmp_path), OWN_V1)
    assert found == cgroup.Hierarchies(1, memory, cpu)


def test_find_version_2(tmp_path: Path) -> None:
    mounts = f"31 30 0:27 / {tmp_path} rw shared:10 - cgroup2 cgroup2 rw,nsdelegate\n"
    own = tmp_path / "user.slice/run.scope"
    own.mkdir(parents=True)
    (own / "cgroup.subtree_control").write_text("cpu memory pids\n")
    found = cgroup.find(mounts, "0::/user.slice/run.scope\n")
    assert found == cgroup.Hierarchies(2, own, own)


def test_find_a_mount_of_a_part_of_the_tree(tmp_path: Path) -> None:
    mounts = f"31 30 0:27 /outer {tmp_path} rw - cgroup cgroup rw,memory\n"
    (tmp_path / "inner").mkdir()
    assert cgroup.find(mounts, "4:memory:/outer/inner\n").memory == tmp_path / "inner"


def test_find_nothing(tmp_path: Path) -> None:
    assert cgroup.find("", "") == cgroup.Hierarchies()
    mounts = f"31 30 0:27 / {tmp_path} rw shared:10 - cgroup2 cgroup2 rw\n"
    assert cgroup.find(mounts, "0::/\n") == cgroup.Hierarchies()


def test_a_version_2_group_writes_the_kernels_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "hierarchies", lambda: cgroup.Hierarchies(2, tmp_path, tmp_path))
    group = cgroup.create(123 << 20)
    assert group is not None
    (folder,) = tmp_path.iterdir()
    assert (folder / "memory.max").read_text() == str(123 << 20)
    group.add(42)
    assert (folder / "cgroup.procs").read_text() == "42"
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 3\noom 1\noom_kill 0\n")
    (folder / "cpu.stat").write_text("usage_usec 1234567\nuser_usec 1000000\n")
    assert not group.out_of_memory() and group.cpu_ms() == 1234
    (folder / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert group.out_of_memory()


def test_no_group_where_none_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = cgroup.Hierarchies(1, tmp_path / "gone", None)
    monkeypatch.setattr(cgroup, "hierarchies", lambda: missing)
    assert cgroup.create(1 << 20) is None


# ---- slots and owners (what only root does)


@pytest.mark.skipif(not ROOT, reason="only root has slots and changes owners")
class TestAsRoot:
    def test_one_slot_per_workspace_and_the_same_one_again(self, tmp_path: Path) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        one.mkdir()
        two.mkdir()
        first, second = slots.take(one), slots.take(two)
        assert first.uid != second.uid and {first.uid, second.uid} <= set(slots.UIDS)
        slots.own(one, first.uid)
        shared = slots.take(one)
        assert shared.uid == first.uid
        first.release()
        first.release()
        third = slots.take(two)
        assert third.uid not in (shared.uid, second.uid)
        for slot in (shared, second, third):
            slot.release()
        again = slots.take(one)
        assert again.uid == one.stat().st_uid
        again.release()

    def test_a_tree_changes_hands_once(self, tmp_path: Path) -> None:
        tree = tmp_path / "ws"
        (tree / "deep" / "er").mkdir(parents=True)
        (tree / "deep" / "file").write_text("text")
        (tree / "link").symlink_to(tmp_path / "outside")
        (tmp_path / "outside").write_text("mine")
        assert slots.own(tree, slots.FIRST) == 5
        assert slots.own(tree, slots.FIRST) == 0
        assert {path.lstat().st_uid for path in tree.rglob("*")} == {slots.FIRST}
        assert (tmp_path / "outside").stat().st_uid == 0

    def test_a_file_that_has_a_name_elsewhere_keeps_its_owner(self, tmp_path: Path) -> None:
        tree = tmp_path / "ws"
        tree.mkdir()
        (tmp_path / "cache").write_text("shared with a package cache")
        (tree / "shared").hardlink_to(tmp_path / "cache")
        (tree / "twin").write_text("two names, both inside")
        (tree / "other twin").hardlink_to(tree / "twin")
        slots.own(tree, slots.FIRST)
        assert (tmp_path / "cache").stat().st_uid == 0
        assert (tree / "twin").stat().st_uid == slots.FIRST

    def test_folders_of_the_system_are_refused(self) -> None:
        for folder in ("/", "/usr", "/etc", "/root", "/tmp"):
            with pytest.raises(slots.SlotError):
                slots.own(Path(folder), slots.FIRST)
