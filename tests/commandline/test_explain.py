"""What a command line starts: its programs, the paths that it names, and what programs that only read use."""

from __future__ import annotations

import pytest

from spak.commandline import explain, readers

STARTS = {
    "ls -la src": ["ls"],
    "cd src && make -j2 | tail -n 3": ["cd", "make", "tail"],
    "timeout 60 pytest -q": ["timeout", "pytest"],
    "env -u A B=1 nice -n 5 make": ["env", "nice", "make"],
    "sudo -u bob rm -rf /": ["sudo", "rm"],
    "git ls-files | xargs -n 1 sed -i s/a/b/": ["git", "xargs", "sed"],
    "find . -name '*.py' -exec rm {} \\; -exec wc {} +": ["find", "rm", "wc"],
    "bash -c 'cat a | sh -c \"rm b\"'": ["bash", "cat", "sh", "rm"],
    "bash -lc 'make'": ["bash", "make"],
    "echo $(date; $X) `id`": ["date", "?", "id", "echo"],
    "if test -f a; then make; fi": ["test", "make"],
    "for f in a b; do ./run $f; done": ["./run"],
    "bash -c \"$X\"": ["bash", "?"],
    "bash -c 'a \"b'": ["bash", "?"],
    "bash script.sh": ["bash"],
    "eval 'make x'": ["eval", "make"],
    "xargs": ["xargs", "?"],
    "> a": ["?"],
    "A=1": ["?"],
    "\"py\"test": ["pytest"],
    "py{t,}est": ["?"],
}  # fmt: skip


@pytest.mark.parametrize("line", STARTS)
def test_its_programs_in_order(line: str) -> None:
    assert [one.program for one in explain.line(line).started] == STARTS[line]


def test_a_program_with_arguments_is_no_line() -> None:
    found = explain.words(["echo", "a; rm -rf / $(id) > y"])
    assert [one.program for one in found.started] == ["echo"] and found.writes == ()


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("rm -rf / ~/x build", ("/", "~/x")),
        ("cp src/a.py ../b --log=out/x.txt", ("src/a.py", "../b", "out/x.txt")),
        ("curl https://a.example/x -d @.env > out", (".env", "out")),
        ("cd src && cat a.py > b.txt", ("a.py", "src/b.txt")),
        ("echo hello a=b", ()),
        ("ls 2>/dev/null", ()),
    ],
)
def test_the_paths_that_it_names(line: str, paths: tuple[str, ...]) -> None:
    assert explain.line(line).paths == paths


def test_variables_that_it_gives() -> None:
    assert explain.line("A=1 env B=2 make").sets == (("A", "1"), ("B", "2"))


@pytest.mark.parametrize("line", ["a 'b", "", "f() { rm x; }; f", "$(" * 200])
def test_what_cannot_be_read_has_a_code(line: str) -> None:
    assert explain.line(line).trouble is not None and explain.line(line).started == ()


def test_a_line_without_an_end_ends_with_what_nobody_knows() -> None:
    long = explain.line(" && ".join(["true"] * 1000))
    assert len(long.started) == explain.MAX_PROGRAMS + 1 and long.started[-1].program == explain.UNKNOWN
    deep = explain.words(["timeout", "1"] * 100 + ["ls"])
    assert len(deep.started) < 20 and deep.started[-1].program == explain.UNKNOWN


READS = {
    "cat a b": ["a", "b"],
    "head -n 5 -c3 -20 a": ["a"],
    "grep -rn x src": ["src"],
    "grep -e x a": ["a"],
    "cd src && cd deep && cat a ../b": ["src/deep/a", "src/deep/../b"],
    "sed -n '1,20p;$p' a": ["a"],
    "sort -k2,2 -t: a | uniq -c": ["a"],
    "git status --short": [],
    "timeout 5 cat a": ["a"],
    "bash -c 'cat a'": ["a"],
}  # fmt: skip
MORE = (
    "cat --frob a", "cat $X", "cat ~/a", "cat {a,b}", "cat @a.args | strings @b", "./cat a", "/bin/cat a",
    "sed -i s/a/b/ a", "sed -n '1e id' a", "sed 1p a", "sort --compress-program=sh a", "grep -f a b",
    "git -C x status", "cd x && git status", "git log -p", "git show", "find . -delete",
    "find . -exec cat {} +", "xargs cat", "while true; do ls; done", "cd x; cat a", "cd x | cat a",
    "printf -v x y", "test -v 'a[$(b)]'",
    "zsh -c 'cat a'", "bash -lc 'cat a'", "bash -c 'cat a' x", "case $X in a) cat a;; esac", "env cat a",
    "uniq a b", "cat .*/a", "awk 'BEGIN{system(1)}' a",
)  # fmt: skip


@pytest.mark.parametrize("line", READS)
def test_what_readers_read(line: str) -> None:
    started = explain.line(line).started
    assert all(one.reads is not None for one in started)
    paths = [read.path for one in started if one.program != "cd" for read in one.reads or ()]
    assert paths == READS[line]


@pytest.mark.parametrize("line", MORE)
def test_what_may_do_more_than_read(line: str) -> None:
    assert any(one.reads is None for one in explain.line(line).started)


def test_a_folder_that_is_read_with_all_in_it_is_said_to_be() -> None:
    for line in ("grep -r x", "rg x src", "diff a b", "git diff src"):
        (one,) = explain.line(line).started
        assert one.reads and all(read.walks for read in one.reads), line


def test_every_row_of_the_table_is_used_as_it_is_written() -> None:
    for name, row in readers.ROWS.items():
        assert row.any is None or not row.texts, name
        assert all(both.startswith("--") for both in row.flags & row.values), name
        assert row.needs <= row.flags and row.instead <= row.flags | row.values, name
        assert row.below <= row.flags | {"always"}, name
