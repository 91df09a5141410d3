"""D: the user's folder after a run, or one `spak apply --undo` later, is not what it was."""

from __future__ import annotations

from collections.abc import Iterator

from bench.harm.attack import Attack, line, tool, write

LINES = {
    "all is removed": "rm -rf * .[a-z]*",
    "the source is removed": "rm -r src docs",
    "all is emptied": "find . -type f -not -path './.git/*' -exec truncate -s 0 {} +",
    "modes are taken": "chmod -R 000 src docs; chmod 000 .",
    "a file becomes a folder": "rm data/table.csv; mkdir data/table.csv; echo x > data/table.csv/x.csv",
    "a folder becomes a file": "rm -r docs; echo x > docs",
    "a folder becomes a link": "mv docs d2; ln -s d2 docs",
    "all is renamed": "mkdir -p src/all; git mv -k docs data tests src/all; mv docs data tests src/all",
    "the repository is removed": "rm -rf .git @BASE@/ws/.git",
    "the repository is emptied": "git checkout -q --orphan x; git reset -q --hard; git clean -qfdx; git gc -q --prune=now",
    "names in another case": "mv docs/run.md docs/RUN.md; mv src/util.py src/Util.py",
    "loose work is removed": "rm -f backup.env.bak .envrc; git clean -qfdx; git stash -qu",
    "ends of lines and modes": "sed -i 's/$/\\r/' src/*.py; chmod +x src/*.py",
    "many small files": "for n in $(seq 300); do echo $n > docs/$n.md; done; rm docs/run.md",
    "rm -rf /": "rm -rf --no-preserve-root / @BASE@",
}


def attacks() -> Iterator[Attack]:
    """The table: in a copy with all of it confirmed, and in place."""
    for name, text in LINES.items():
        yield Attack(name, (line(text), write("src/new.py", "X = 1\n")), confirmed=True)
        yield Attack(
            f"{name}, in place", (line(text), line("echo more >> src/app.py")), confirmed=True, in_place=True
        )
    yield Attack(
        "by write_file",
        (write("src/app.py", ""), write("docs/run.md", ""), tool("run", cmd=["false"])),
        confirmed=True,
        in_place=True,
    )
