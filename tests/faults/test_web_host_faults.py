"""Sixty runs that are started while the host is at fault: none fails for good, all go on when it has passed.

A real platform. A preloaded library lets writes, syncs and opens for writing fail below the runs folder, and
new processes and threads of the worker, for as long as a file says so; descriptors are taken from the worker.
A fault lasts until each run says why it waits.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from process_kit import until
from up_kit import Platform

pytestmark = [pytest.mark.faults, pytest.mark.sandbox, pytest.mark.slow, pytest.mark.timeout(900)]

EACH = 12
HI = 'task Hi { step a: tool.run { cmd: "echo hi" } success: exit_code(a) == 0 }'
START = """
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.store.specs.models import Spec
from spakweb.ground.teams.models import User
alice = User.objects.get(username="alice")
team = alice.memberships.first().team
spec = Spec.objects.filter(slug="hi").first() or create_spec(alice, team, "hi", {text!r})
for _ in range({many}):
    print("KEY", start(alice, spec, mode="full_auto").key)
"""
FAULTY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))
static int on(const char *what) {  /* the file says `what` of this process, or of each */
  char path[512], of[512];
  const char *folder = getenv("FAULTS");
  int kept = errno, found;
  if (!folder) return 0;
  snprintf(path, sizeof path, "%s/%s", folder, what);
  snprintf(of, sizeof of, "%s/%s-%d", folder, what, getpid());
  found = !access(path, F_OK) || !access(of, F_OK);
  errno = kept;
  return found;
}
static int below(int fd, const char *path) {
  char link[64], place[4096];
  ssize_t size;
  if (path && path[0] == '/') return strstr(path, "/data/runs/") != 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  size = readlink(link, place, sizeof place - 1);
  if (size < 0) return 0;
  place[size] = 0;
  return strstr(place, "/data/runs/") != 0;
}
static unsigned calls;
static int eio(int fd) {
  if (on("EIO")) return below(fd, 0);
  return on("half") && below(fd, 0) && __sync_fetch_and_add(&calls, 1) % 2;
}
static int fails(int number) { errno = number; return -1; }
ssize_t write(int fd, const void *data, size_t size) {
  return eio(fd) ? fails(EIO) : REAL(write)(fd, data, size);
}
int fsync(int fd) { return eio(fd) ? fails(EIO) : REAL(fsync)(fd); }
int fdatasync(int fd) { return eio(fd) ? fails(EIO) : REAL(fdatasync)(fd); }
static int writes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0; }
#define OPEN(name) \
int name(const char *path, int flags, ...) { \
  va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
  if (writes(flags) && on("EROFS") && below(-1, path)) return fails(EROFS); \
  return REAL(name)(path, flags, mode); }
#define OPENAT(name) \
int name(int at, const char *path, int flags, ...) { \
  va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
  if (writes(flags) && on("EROFS") && below(at, path)) return fails(EROFS); \
  return REAL(name)(at, path, flags, mode); }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)
int mkdir(const char *path, mode_t mode) {
  return on("EROFS") && below(-1, path) ? fails(EROFS) : REAL(mkdir)(path, mode);
}
int mkdirat(int at, const char *path, mode_t mode) {
  return on("EROFS") && below(at, path) ? fails(EROFS) : REAL(mkdirat)(at, path, mode);
}
pid_t fork(void) { return on("EAGAIN") ? fails(EAGAIN) : REAL(fork)(); }
pid_t vfork(void) { return fork(); }
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *with) {
  return on("EAGAIN") ? EAGAIN : REAL(pthread_create)(thread, how, work, with);
}
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    place = tmp_path_factory.mktemp("faulty")
    (place / "faults").mkdir()
    (place / "faulty.c").write_text(FAULTY)
    line = ["gcc", "-shared", "-fPIC", "-o", "faulty.so", "faulty.c", "-ldl", "-lpthread"]
    subprocess.run(line, cwd=place, check=True)
    found = Platform(
        place / "data", LD_PRELOAD=str(place / "faulty.so"), FAULTS=str(place / "faults"),
        SPAK_WEB_TEAM_RUNS=str(2 * EACH),
    )  # fmt: skip
    try:
        found.ends()
        yield found
    finally:
        if found.up.process.poll() is None:
            found.up.stop()


@contextmanager
def said(platform: Platform, name: str) -> Iterator[None]:
    file = Path(platform.more["FAULTS"]) / name
    file.touch()
    try:
        yield
    finally:
        file.unlink()


@contextmanager
def few_descriptors(platform: Platform) -> Iterator[None]:
    worker = platform.child("spakweb.work.worker.process")
    usual = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    open_now = max(int(name) for name in os.listdir(f"/proc/{worker}/fd"))  # noqa: PTH208
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (open_now + 3, usual[1]))
    try:
        yield
    finally:
        resource.prlimit(worker, resource.RLIMIT_NOFILE, usual)


def processes(platform: Platform) -> object:
    return said(platform, f"EAGAIN-{platform.child('spakweb.work.worker.process')}")


FAULTS: dict[str, Callable[[Platform], object]] = {
    "EIO": lambda platform: said(platform, "EIO"),
    "half of the calls": lambda platform: said(platform, "half"),
    "EROFS": lambda platform: said(platform, "EROFS"),
    "descriptors": few_descriptors,
    "processes": processes,
}


def rows(platform: Platform, keys: list[str]) -> list[tuple[str, str, int]]:
    named = ", ".join(f"'{key}'" for key in keys)
    found = platform.query(f"SELECT state, reason, count FROM runs_run WHERE key IN ({named})")
    return [(str(state), str(reason), int(str(count))) for state, reason, count in found]


@pytest.mark.findings("F1", "F2")
@pytest.mark.parametrize("name", FAULTS)
def test_no_run_fails_for_a_fault_of_the_host(platform: Platform, name: str) -> None:
    worker = platform.child("spakweb.work.worker.process")
    ended = ("succeeded", "failed")
    with FAULTS[name](platform):  # type: ignore[attr-defined]
        text = platform._shell(START.format(text=HI, many=EACH))
        keys = re.findall(r"^KEY (\S+)$", text, re.M)
        assert len(keys) == EACH
        until(
            lambda: all(state in ended or reason for state, reason, _ in rows(platform, keys)),
            lambda: f"not all were tried: {rows(platform, keys)}\n{platform.up.said[-4000:]}",
        )
        during = rows(platform, keys)
    passed = time.monotonic()
    until(
        lambda: all(state in ended for state, *_ in rows(platform, keys)),
        lambda: f"they do not go on: {rows(platform, keys)}\n{platform.up.said[-4000:]}",
    )
    took = time.monotonic() - passed
    after = rows(platform, keys)
    failed = [row for row in after if row[0] != "succeeded"]
    waited = sum(state == "queued" for state, *_ in during)
    print(
        json.dumps({"fault": name, "failed": len(failed), "of": EACH, "waited": waited, "s": round(took, 1)})
    )
    assert not failed, failed
    assert name == "half of the calls" or waited, during
    assert platform.child("spakweb.work.worker.process") == worker, "the worker died"
    assert "Unrecoverable" not in platform.up.said
