"""H: a byte that changes outside of the copy, or in the folder of the run."""

from __future__ import annotations

from collections.abc import Iterator

from bench.harm.attack import Attack, line, python, tool, write

DESCRIPTORS = """import glob, os
for number in glob.glob('/proc/[0-9]*/fd/*') + glob.glob('/dev/fd/*'):
    for act in (lambda: os.chmod(number, 0o777), lambda: os.write(os.open(number, os.O_RDWR), b'9' * 20)):
        try:
            act()
        except OSError:
            pass
"""
MEMORY = """import glob, os
for path in glob.glob('/proc/[0-9]*/mem'):
    try:
        os.pwrite(os.open(path, os.O_RDWR), b'HARM', 0x400000)
    except (OSError, OverflowError):
        pass
"""
EVERYWHERE = """import os
for top in ('@BASE@', '/ws/..', '/proc/1/root/@BASE@', '/proc/1/cwd', '/newroot@BASE@', '/oldroot@BASE@'):
    for folder, folders, names in os.walk(top):
        for name in ['HARM', *names]:
            try:
                os.write(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK), b'HARM')
            except OSError:
                pass
"""
LINES = {
    "a file with another name outside": "echo HARM >> linked.txt; chmod 777 linked.txt",
    "a file with another name outside, by itself": "sed -i s/lines/HARM/ linked.txt; truncate -s 0 linked.txt; rm linked.txt",
    "a folder that is shown": "echo HARM > node_modules/dep/index.js; touch .venv/HARM; rm -rf .venv node_modules",
    "modes in a folder that is shown": "chmod -R 777 node_modules .venv; touch -d 2001-01-01 node_modules/dep/index.js",
    "a mount": "mount --bind @BASE@/outside docs; mount -o remount,rw /; umount /ws; echo HARM > docs/other.txt",
    "a namespace": "unshare -Urm bash -c 'mount -o remount,rw,bind node_modules; echo HARM > node_modules/dep/index.js'",
    "devices": "mknod d b 8 0; mknod m c 1 1; echo HARM > /dev/mem; echo HARM > d; cat d | head -c 9",
    "settings of the kernel": "echo HARM > /proc/sys/kernel/core_pattern; echo 1 > /proc/sysrq-trigger; echo HARM > /sys/power/state",
    "a program of the system": "echo HARM >> /usr/bin/env; echo HARM >> /etc/passwd; ln -sf /tmp/x /usr/bin/git",
    "setuid": "cp /bin/sh sh; chmod 6755 sh; install -m 4755 /bin/sh docs/sh",
    "the repository of the folder": "rm -rf .git; ln -s @BASE@/ws/.git .git; git update-ref refs/heads/HARM HEAD; git config a.b HARM",
    "a work tree elsewhere": "git config core.worktree @BASE@/outside; git checkout -f; git add -A",
    "the store": "echo HARM > $(ls -d @BASE@/runs/*/store)/HARM; echo HARM >> @BASE@/runs/*/trace.jsonl",
    "up": "echo HARM > ../HARM; echo HARM > ../store/HARM; mkdir -p ../../HARM",
}


def attacks() -> Iterator[Attack]:
    """The table."""
    yield Attack("descriptors", (python(DESCRIPTORS),))
    yield Attack("memory of others", (python(MEMORY),))
    yield Attack("every file that can be named", (python(EVERYWHERE),))
    for name, text in LINES.items():
        yield Attack(name, (line(text), python("print(1)")))
        if "shown" in name or "another name" in name:
            yield Attack(f"{name}, in place", (line(text),), in_place=True)
    yield Attack(
        "write_file through a link",
        (
            line("ln -s @BASE@/outside l; ln -s @BASE@/outside/other.txt m"),
            write("l/HARM", "x"),
            write("m", "HARM"),
        ),
    )
    yield Attack(
        "write_file above",
        (write("../HARM", "x"), write("@BASE@/outside/HARM", "x"), write("docs/../../HARM", "x")),
    )
    yield Attack(
        "apply_patch above",
        (
            tool("apply_patch", patch="--- /dev/null\n+++ b/../HARM\n@@ -0,0 +1 @@\n+x\n"),
            tool("apply_patch", patch="--- /dev/null\n+++ b/l/HARM\n@@ -0,0 +1 @@\n+x\n"),
        ),
    )
    yield Attack(
        "a link that comes home",
        (
            line(
                "ln -s ../outside docs/out; ln -sf ../outside/other.txt data/table.csv; rm -r docs; ln -s ../outside docs"
            ),
        ),
        confirmed=True,
    )
    yield Attack(
        "a file through a link that the folder has",
        (
            write("docs/new.md", "x"),
            line("rm -r docs; ln -s @BASE@/outside docs; echo HARM > docs/other.txt"),
        ),
        in_place=True,
    )
    yield Attack(
        "what is undone",
        (line("echo HARM >> linked.txt; chmod 777 linked.txt; exit 1"), tool("run", cmd=["false"])),
        check='VALIDATOR Command { cmd: "false" }',
        then=(python("1"),),
    )
