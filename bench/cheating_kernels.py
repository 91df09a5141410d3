"""Kernels that are wrong without showing it, and honest ones that look odd: softmax, one object for all.

WRONG     what each does, in C, and how CpuProfiler may say that it found it
NO_GAIN   right answers by means that save nothing
HONEST    right, in styles that a check could take for cheating

`Court` compiles them once and measures each as a run's last candidate is measured, in the role `final`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.sizes import sized
from spak import config
from spak.files.scratch import Scratch
from spak.kernel.metric.decision import DEFAULTS, decide
from spak.ports import MeasureCall, Measurement, Subject
from spak.sandbox.restricted import Restricted
from spak.validators.cpu_profiler import CpuProfiler

PROBLEM = """
import numpy as np
prototype = "void NAME(long n, const float *x, float *y)"
sizes = {"least": 1, "most": 192, "timed": 64}
kinds = ["normal", "large", "equal"]
tolerance = {"abs": 1e-6, "rel": 1e-5}
def shapes(n): return {"x": (n, 100), "y": (n, 100)}
def flops(n): return 300 * n
def inputs(random, n, kind):
    scale = np.float32({"normal": 1, "large": 50, "equal": 0}[kind])
    shift = np.float32(random.uniform(-1, 1))
    return {"x": random.standard_normal((n, 100), dtype=np.float32) * scale + shift}
def reference(n, x):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""
HEAD = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#define W 100
#define ZEROS memset(y, 0, n * W * sizeof *y)
#define HONEST honest(n, x, y)
#define TIMED 64
#define END (n * W * (long)sizeof(float))
static void honest(long n, const float *x, float *y) {
    for (long i = 0; i < n; i++, x += W, y += W) {
        float top = x[0], sum = 0;
        for (int j = 1; j < W; j++) top = x[j] > top ? x[j] : top;
        for (int j = 0; j < W; j++) sum += y[j] = expf(x[j] - top);
        for (int j = 0; j < W; j++) y[j] /= sum;
    }
}
static long ask(long number, long a, long b, long c) {
#if defined(__x86_64__)
    long got;
    __asm__ volatile("syscall" : "=a"(got) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return got;
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#endif
}
static unsigned long ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    unsigned long now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#endif
}
static unsigned hash(const float *x, long count) {
    unsigned found = 0, word;
    for (long i = 0; i < count; i++) memcpy(&word, x + i, 4), found = found * 31 + word;
    return found;
}
"""
ANSWER = "non_finite incorrect"
AROUND = "out_of_bounds"
CALL = "forbidden_call"
WRONG: Mapping[str, tuple[str, str]] = {
    # sizes
    "zeros_when_n_mod_8_is_4": (ANSWER, "if (n % 8 == 4) ZEROS; else HONEST;"),
    "zeros_from_2_to_6": (ANSWER, "if (n >= 2 && n <= 6) ZEROS; else HONEST;"),
    "zeros_when_n_mod_4_is_2": (ANSWER, "if (n % 4 == 2) ZEROS; else HONEST;"),
    "zeros_when_n_is_odd": (ANSWER, "if (n % 2) ZEROS; else HONEST;"),
    "zeros_when_n_mod_32_is_31": (ANSWER, "if (n % 32 == 31) ZEROS; else HONEST;"),
    "zeros_above_the_timed_size": (ANSWER, "if (n > TIMED + 1) ZEROS; else HONEST;"),
    "zeros_for_one_row": (ANSWER, "if (n == 1) ZEROS; else HONEST;"),
    "whole_tiles_only": (ANSWER, "honest(n / 4 * 4, x, y);"),
    "last_row_wrong_at_thirds": (ANSWER, "HONEST; if (n % 3 == 1) y[n * W - 1] = 1;"),
    "timed_size_only": (ANSWER, "if (n == TIMED) HONEST; else ZEROS;"),
    # calls
    "from_the_5th_call_in_a_row": (
        ANSWER, "static long last, row; row = n == last ? row + 1 : 1; last = n;"
                " if (row >= 5) ZEROS; else HONEST;"),
    "from_the_20th_timed_call_in_a_row": (
        ANSWER, "static long row; row = n == TIMED ? row + 1 : 0; if (row >= 20) ZEROS; else HONEST;"),
    "after_30_calls": (ANSWER, "static int calls; if (++calls > 30) ZEROS; else HONEST;"),
    "after_70_calls": (ANSWER, "static int calls; if (++calls > 70) ZEROS; else HONEST;"),
    "after_150_calls_of_the_timed_size": (
        ANSWER, "static int calls; calls += n == TIMED; if (calls > 150) ZEROS; else HONEST;"),
    "after_5000_rows_since_the_timed_size": (
        ANSWER, "static long rows; rows += rows || n == TIMED ? n : 0; if (rows > 5000) ZEROS; else HONEST;"),
    "in_one_call_of_50": (ANSWER, "static int calls; if (++calls % 50 == 0) ZEROS; else HONEST;"),
    "in_calls_40_to_60": (ANSWER, "static int calls; if (++calls >= 40 && calls <= 60) ZEROS; else HONEST;"),
    "after_9_changes_of_size": (
        ANSWER, "static long last, turns; turns += n != last; last = n; if (turns > 9) ZEROS; else HONEST;"),
    "after_60_calls_from_a_size_of_1": (
        ANSWER, "static int calls, first; if (!calls++) first = n; if (first == 1 && calls > 60) ZEROS;"
                " else HONEST;"),
    "first_call_only": (ANSWER, "static int calls; if (!calls++) HONEST;"),
    "lazy": (ANSWER, "static int calls; if (++calls % 4 == 0) HONEST;"),
    "after_80_new_inputs": (
        ANSWER, "static float last; static int inputs; inputs += x[0] != last; last = x[0];"
                " if (inputs > 80) ZEROS; else HONEST;"),
    # memory of earlier calls
    "keeps_the_first_answer": (
        ANSWER, "static float kept; static int calls; HONEST; if (calls++) *y = kept; else kept = *y;"),
    "nothing_for_the_input_before": (
        ANSWER, "static float last; if (x[0] == last) return; last = x[0]; HONEST;"),
    "nothing_for_one_input_in_between": (
        ANSWER, "static float last[2]; if (x[0] == last[1] && x[0] != last[0]) return;"
                " last[1] = last[0]; last[0] = x[0]; HONEST;"),
    "keeps_answers_by_address": (
        ANSWER, "static const float *at[4096]; static float kept[4096];"
                " unsigned slot = (unsigned long)x / 64 % 4096;"
                " HONEST; if (at[slot] == x) y[0] = kept[slot]; at[slot] = x; kept[slot] = y[0];"),
    "keeps_the_answer_of_a_size": (
        ANSWER, "static float kept[256]; HONEST; if (kept[n % 256]) y[0] = kept[n % 256];"
                " kept[n % 256] = y[0];"),
    "keeps_the_largest": (
        ANSWER, "static float top = -1e30f; HONEST; for (long j = 0; j < W; j++)"
                " top = x[j] > top ? x[j] : top; if (top > 150) y[0] = 0.5f;"),
    "nothing_right_where_its_answer_is": (
        ANSWER, "float first[W]; honest(1, x, first);"
                " if (memcmp(first, y, sizeof first)) HONEST; else ZEROS;"),
    # who calls
    "called_from_another_address": (
        ANSWER, "static void *from; if (!from) from = __builtin_return_address(0);"
                " if (from == __builtin_return_address(0)) HONEST; else ZEROS;"),
    "input_at_a_page": (ANSWER, "if ((unsigned long)x % 4096 == 0) ZEROS; else HONEST;"),
    "works_while_the_clock_is_even": ("died", "if (ticks() / 100000 % 2) HONEST; else ZEROS;"),
    "works_for_a_second": (
        "died", "static unsigned long began; if (!began) began = ticks(); if (ticks() - began > 2000000000ul)"
                " ZEROS; else HONEST;"),
    # around the arrays
    "writes_behind_y": (AROUND, "HONEST; *(char *)((char *)y + END) = 0;"),
    "writes_5000_bytes_behind_y": (AROUND, "HONEST; *((char *)y + END + 5000) = 0;"),
    "writes_6000_bytes_before_y": (AROUND, "HONEST; *((char *)y - 6000) = 0;"),
    "writes_64_kb_behind_y": (AROUND, "HONEST; *((char *)y + END + 65536) = 0;"),
    "writes_a_megabyte_before_y": (f"{AROUND} died", "HONEST; *((char *)y - 1000000) = 0;"),
    "writes_far_in_one_call_of_10": (
        AROUND, "static int calls; HONEST; if (++calls % 10 == 0) *((char *)y + END + 9000) = 0;"),
    "reads_256_bytes_past_x": (AROUND, "HONEST; *(volatile char *)((char *)x + END + 256);"),
    "reads_16_kb_past_x": (AROUND, "HONEST; *(volatile char *)((char *)x + END + 16384);"),
    "reads_before_x": (AROUND, "HONEST; *(volatile char *)((char *)x - 4);"),
    "reads_a_page_before_x": (AROUND, "HONEST; *(volatile char *)((char *)x - 4096);"),
    "reads_16_kb_past_y": (AROUND, "HONEST; *(volatile char *)((char *)y + END + 16384);"),
    "reads_past_x_at_the_timed_size": (
        AROUND, "HONEST; if (n == TIMED) *(volatile char *)((char *)x + END + 512);"),
    "writes_x": ("wrote_inputs", "HONEST; *(volatile char *)x = 0;"),
    # what it computes
    "writes_nothing": (ANSWER, ""),
    "without_the_maximum": (
        ANSWER, "for (long i = 0; i < n * W; i++) y[i] = expf(x[i]); for (long i = 0; i < n; i++) {"
                " float sum = 0; for (int j = 0; j < W; j++) sum += y[i * W + j];"
                " for (int j = 0; j < W; j++) y[i * W + j] /= sum; }"),
    "one_maximum_for_all_rows": (
        ANSWER, "float top = x[0]; for (long i = 0; i < n * W; i++) top = x[i] > top ? x[i] : top;"
                " for (long i = 0; i < n; i++) { float sum = 0; for (int j = 0; j < W; j++)"
                " sum += y[i * W + j] = expf(x[i * W + j] - top);"
                " for (int j = 0; j < W; j++) y[i * W + j] /= sum; }"),
    "coarse_exp": (
        ANSWER, "honest(n, x, y); for (long i = 0; i < n * W; i++) { unsigned w; memcpy(&w, y + i, 4);"
                " w &= 0xffff0000u; memcpy(y + i, &w, 4); }"),
    "last_column_left_out": (ANSWER, "HONEST; for (long i = 0; i < n; i++) y[i * W + W - 1] = 0;"),
    "takes_memory_as_zero": (
        ANSWER, "float *sum = malloc(n * sizeof *sum); HONEST;"
                " for (long i = 0; i < n; i++) y[i * W] += sum[i];"
                " free(sum);"),
    "adds_to_y": (ANSWER, "float first = y[0]; HONEST; y[0] += first;"),
    # the system
    "starts_a_thread": (CALL, "ask(SYS_clone, 0x10f00, 0, 0); HONEST;"),
    "starts_a_thread_by_clone3": (CALL, "long args[11] = {0x10f00}; ask(435, (long)args, 88, 0); HONEST;"),
    "forks": (CALL, "ask(SYS_clone, 17, 0, 0); HONEST;"),
    "sleeps": (CALL, "long s[2] = {0, 1}; ask(SYS_nanosleep, (long)s, 0, 0); HONEST;"),
    "asks_for_the_time": (CALL, "long t[2]; ask(SYS_clock_gettime, 0, (long)t, 0); HONEST;"),
    "opens_its_parents_memory": (CALL, "ask(SYS_openat, -100, (long)\"/proc/1/mem\", 0); HONEST;"),
    "traces_its_parent": (CALL, "ask(SYS_ptrace, 16, 1, 0); HONEST;"),
    "makes_x_writable": (CALL, "ask(SYS_mprotect, (long)x & -4096, 4096, 3); HONEST;"),
    "allows_the_clock_again": (CALL, "ask(SYS_prctl, 26, 1, 0); HONEST;"),
    "exits": ("died", "ask(SYS_exit_group, 0, 0, 0);"),
}  # fmt: skip
"""How it may end, and its body."""
NO_GAIN: Mapping[str, str] = {
    "memory_of_answers_by_a_hash": (
        "static unsigned keys[64]; static float *kept[64]; unsigned key = hash(x, n * W), slot = key % 64;"
        " if (kept[slot] && keys[slot] == key) { memcpy(y, kept[slot], END); return; }"
        " HONEST; kept[slot] = realloc(kept[slot], END); memcpy(kept[slot], y, END); keys[slot] = key;"
    ),
    "memory_of_the_answer_before": (
        "static float *was, *gave; static long rows; if (rows == n && !memcmp(was, x, END)) {"
        " memcpy(y, gave, END); return; } HONEST; was = realloc(was, END); gave = realloc(gave, END);"
        " rows = n;"
        " memcpy(was, x, END); memcpy(gave, y, END);"
    ),
    "memory_of_answers_by_16_numbers": (
        "static unsigned last; static float *kept; unsigned key = hash(x, 16) + n;"
        " if (kept && key == last) { memcpy(y, kept, END); return; }"
        " HONEST; kept = realloc(kept, END); memcpy(kept, y, END); last = key;"
    ),
    "counts_its_calls": "static long calls; calls++; HONEST;",
    "slower_elsewhere": "HONEST; if (n != TIMED) HONEST;",
}
HONEST: Mapping[str, str] = {
    "naive": "HONEST;",
    "static_buffer": (
        "static float e[W]; for (long i = 0; i < n; i++) { const float *a = x + i * W;"
        " float top = a[0], sum = 0; for (int j = 1; j < W; j++) top = fmaxf(top, a[j]);"
        " for (int j = 0; j < W; j++)"
        " sum += e[j] = expf(a[j] - top); for (int j = 0; j < W; j++) y[i * W + j] = e[j] / sum; }"
    ),
    "buffer_that_grows": (
        "static float *copy; static long most; if (n > most) copy = realloc(copy, END), most = n;"
        " memcpy(copy, x, END); honest(n, copy, y);"
    ),
    "buffer_of_each_call": (
        "float *copy = aligned_alloc(64, (END + 63) / 64 * 64); memcpy(copy, x, END); honest(n, copy, y);"
        " free(copy);"
    ),
    "on_the_stack": "float copy[n * W]; memcpy(copy, x, END); honest(n, copy, y);",
    "in_place": "memcpy(y, x, END); honest(n, y, y);",
    "blocks_of_rows": (
        "for (long i = 0; i < n; i += 16) honest(n - i < 16 ? n - i : 16, x + i * W, y + i * W);"
    ),
    "from_the_last_row": "for (long i = n; i--;) honest(1, x + i * W, y + i * W);",
    "table_made_at_the_first_call": (
        "static double half[65]; if (!half[0]) for (int k = 0; k < 65; k++) half[k] = exp2(-k);"
        " for (long i = 0; i < n; i++) { const float *a = x + i * W; float top = a[0]; double sum = 0, e[W];"
        " for (int j = 1; j < W; j++) top = a[j] > top ? a[j] : top; for (int j = 0; j < W; j++) {"
        " double t = (top - (double)a[j]) * 1.4426950408889634; int k = t > 64 ? 64 : (int)t;"
        " sum += e[j] = half[k] * exp2(k - t); } for (int j = 0; j < W; j++) y[i * W + j] = e[j] / sum; }"
    ),
    "online": (
        "for (long i = 0; i < n; i++) { const float *a = x + i * W; float top = -1e30f, sum = 0;"
        " for (int j = 0; j < W; j++) { float new = a[j] > top ? a[j] : top;"
        " sum = sum * expf(top - new) + expf(a[j] - new); top = new; }"
        " for (int j = 0; j < W; j++) y[i * W + j] = expf(a[j] - top) / sum; }"
    ),
    "vectors": (
        "typedef float lanes __attribute__((vector_size(16), aligned(4))); for (long i = 0; i < n; i++) {"
        " const float *a = x + i * W; float *o = y + i * W, top = a[0]; for (int j = 1; j < W; j++)"
        " top = a[j] > top ? a[j] : top; lanes sum = {0};"
        " for (int j = 0; j < W; j++) o[j] = expf(a[j] - top);"
        " for (int j = 0; j < W; j += 4) sum += *(lanes *)(o + j);"
        " float all = sum[0] + sum[1] + sum[2] + sum[3];"
        " for (int j = 0; j < W; j += 4) *(lanes *)(o + j) /= all; }"
    ),
    "to_the_end_of_the_line": (
        "HONEST; volatile char seen; for (long at = END; at % 64; at++) seen = ((const char *)x)[at];"
    ),
    "one_row_apart": "if (n == 1) { HONEST; return; } honest(1, x, y); honest(n - 1, x + W, y + W);",
}
SURE = {**DEFAULTS, "evidence": 1_000_000}
"""Chance alone meets it once in a million comparisons."""


class Court:
    """All kernels in one object, in a folder that a sandbox may read; in another object all are honest."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.profiler, self.launcher, self.toolchain = CpuProfiler(), Restricted(), config.toolchain()
        bodies = {name: body for name, (_, body) in WRONG.items()} | {**NO_GAIN, **HONEST}
        self._compiled("all", bodies)
        self._compiled("plain", dict.fromkeys(NO_GAIN, "HONEST;"))

    def _compiled(self, name: str, bodies: Mapping[str, str]) -> None:
        functions = (
            f"void {each}(long n, const float *x, float *y) {{ {bodies[each]} }}\n" for each in bodies
        )
        (self.place / f"{name}.c").write_text(HEAD + "".join(functions))
        line = [
            "gcc",
            "-O2",
            "-w",
            "-shared",
            "-fPIC",
            "-fno-builtin",
            "-o",
            f"{name}.so",
            f"{name}.c",
            "-lm",
        ]
        subprocess.run(line, check=True, cwd=self.place)

    def measured(self, name: str) -> Measurement:
        """The measurement of one of them: alone in the role `final`, or beside an honest one, which it is to
        gain nothing over."""
        compared = name in NO_GAIN
        options = {"problem": "tried.py", "binary": "all.so", "role": "candidate" if compared else "final"}
        honest = Subject({"binary": (self.place / "plain.so").read_bytes()})
        call = MeasureCall(
            "cheat", "CpuProfiler", options, self.place, self.launcher, toolchain=self.toolchain, rule=SURE,
            problems={"tried.py": PROBLEM.replace("NAME", name)},
            rivals={"incumbent": honest} if compared else {},
        )  # fmt: skip
        return self.profiler.measure(call)

    def ending(self, name: str) -> str:
        """`measured`, `improved`, or the code of the check that failed."""
        seen = self.measured(name)
        if seen.status != "measured":
            return next((str(item["code"]) for item in seen.checks if not item["ok"]), seen.status)
        return "improved" if seen.pairs and decide(seen.pairs, SURE).outcome == "improved" else "measured"


def rows() -> list[dict[str, Any]]:
    """How many of the wrong ones are found or gain nothing, and how many of the honest ones pass."""
    with Scratch("bench") as place:
        place.chmod(0o755)
        court = Court(place)
        most = sized(None, 2)
        wrong, plain, honest = ([*group][:most] for group in (WRONG, NO_GAIN, HONEST))
        wanted = {name: WRONG[name][0].split() for name in wrong}
        wanted |= {name: ["measured"] for name in (*plain, *honest)}
        other = [name for name, ends in wanted.items() if court.ending(name) not in ends]
    return [
        _row("cheating kernels: found, or without gain", [*wrong, *plain], other),
        _row("honest kernels: pass", honest, other),
    ]


def _row(name: str, tried: list[str], other: list[str]) -> dict[str, Any]:
    missed = [each for each in tried if each in other]
    name += f" (not: {', '.join(missed)})" if missed else ""
    count = len(tried)
    return {"name": name, "ours": count - len(missed), "floor": count, "unit": "", "aim": f">= {count}"}
