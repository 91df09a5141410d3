"""Read into every Python probe: system calls by name, with the numbers of the machine that runs it."""

import ctypes
import os
import platform
import socket  # noqa: F401  (probes use it)

AT_FDCWD = -100
_X86 = {"clone": 56, "ptrace": 101, "syslog": 103, "pivot_root": 155, "mount": 165, "umount2": 166}
_X86 |= {"keyctl": 250, "unshare": 272, "perf_event_open": 298, "open_by_handle_at": 304, "setns": 308}
_X86 |= {"process_vm_readv": 310, "bpf": 321, "userfaultfd": 323}
_X86 |= {"open": 2, "creat": 85, "chmod": 90, "fchmod": 91, "mknod": 133}
_X86 |= {"openat": 257, "mknodat": 259, "fchmodat": 268}
_ARM = {"umount2": 39, "mount": 40, "pivot_root": 41, "unshare": 97, "syslog": 116, "ptrace": 117}
_ARM |= {"keyctl": 219, "clone": 220, "perf_event_open": 241, "open_by_handle_at": 265, "setns": 268}
_ARM |= {"process_vm_readv": 270, "bpf": 280, "userfaultfd": 282}
_ARM |= {"mknodat": 33, "fchmod": 52, "fchmodat": 53, "openat": 56}
NUMBERS = (_X86 if platform.machine() == "x86_64" else _ARM) | {
    "io_uring_setup": 425,
    "open_tree": 428,
    "clone3": 435,
    "openat2": 437,
    "fchmodat2": 452,
}
_libc = ctypes.CDLL(None, use_errno=True)


def buffer(content):
    return ctypes.create_string_buffer(content, len(content) + 1)


def call(name, *arguments):
    number = name if isinstance(name, int) else NUMBERS[name]
    wide = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = _libc.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), name)
    return result
