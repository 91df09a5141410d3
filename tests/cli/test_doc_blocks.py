"""Each command, configuration and law of the documentation is run as it is pasted, with its defaults.

A block of commands begins in a folder that has what its page speaks of (GROUND), and each of its lines is run
by bash; where a block shows output, each line of that is looked for. What cannot be run here says why, in a
comment before it: `<!-- not run: it needs Docker -->`. Specs are run by tests/test_doc_examples.py.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import warm_kit
from process_kit import WAIT_S
from repair_kit import project
from spak import config
from spak.datalog import load
from spak.policy.law import Law, compiled
from spak.runner.genesis import constitution

pytestmark = pytest.mark.sandbox

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OUTSIDE = re.compile(
    r"(?:\$ )?(?:spak|echo|curl|docker|sudo|make|python|python3|celery|gh|cd|helm|export|zcat|set|source)\b"
    r"(?! *[:=])|(?:body|SPAK)="
)
"""How a line of a shell begins."""
REASON = re.compile(r"<!-- not run: (.+?) -->")
APART, ENDS = "each line by itself", re.compile(r"exits: ([\d,]+)")


@dataclass(frozen=True, slots=True)
class Block:
    """A block with the comment before it; `info` is what its fence says, empty for an indented one."""

    page: str
    line: int
    info: str
    text: str
    comment: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def reason(self) -> str:
        found = REASON.search(self.comment)
        return found[1] if found else ""

    @property
    def commands(self) -> bool:
        first = self.text.strip().splitlines()[:1]
        shown = self.info.split()[:1] in ([], ["sh"], ["console"])
        return shown and bool(first and OUTSIDE.match(first[0]))


def blocks() -> Iterator[Block]:
    reader = MarkdownIt("commonmark").enable("table")
    for page in PAGES:
        comment = ""
        for token in reader.parse(page.read_text(encoding="utf-8")):
            if token.type in ("fence", "code_block"):
                assert token.map is not None
                yield Block(page.name, token.map[0] + 1, token.info, token.content, comment)
            comment = token.content if token.type == "html_block" else ""


BLOCKS = list(blocks())
RUN = [block for block in BLOCKS if block.commands and not block.reason]
LEFT = [block for block in BLOCKS if block.reason]
TABLES = [block for block in BLOCKS if re.match(r"\[+(?:llm|sandbox|runs|secrets|policy)\b", block.text)]
LAWS = [block for block in BLOCKS if block.info.split()[:1] == ["mangle"]]


def spec(page: str, word: str) -> str:
    """The first block of a page that holds a word."""
    return next(block.text for block in BLOCKS if block.page == page and word in block.text)


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A line as a person runs it, with a home of its own; its `spak` has its imports behind it."""
    home, quick = folder.with_name(f"home-{folder.name}"), folder.with_name("quick")
    home.mkdir(exist_ok=True)
    if not quick.exists():
        warm_kit.command(quick, ROOT / ".venv/bin/spak")
    path = f"{quick}:{ROOT / '.venv/bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


# ---- what a page speaks of ------------------------------------------------------------------------------

ASK = 'task ask {{ step a: llm.query {{ prompt: "{0}" output_var: word }} }}\n'
COUNT = """AGENT Count LEVEL 2 {
  INPUTS { n: int = 5 }
  START -> tune
  TASK tune {
    GOAL "Count."
    step write: tool.write_file { path: "n.txt" content: "{{input.n}} passed" }
    success: file_exists("n.txt")
    NEXT { success -> last }
  }
  TASK last { GOAL "Done." }
}
"""


def readme(folder: Path) -> None:
    shutil.copytree(ROOT / "specs", folder / "specs")
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/activate").touch()


def approvals(folder: Path) -> None:
    (folder / "keep.spak").write_text(spec("approvals.md", "AGENT Keep"))
    assert shell(folder, "spak keys make alice 2>notes >spak.toml").returncode == 0
    assert shell(folder, "spak run keep.spak").returncode == 4


def edited(folder: Path) -> None:
    tasks = 'TASK tune { GOAL "Go." NEXT { success -> done } } TASK done { GOAL "Done." }'
    (folder / "a.spak").write_text(f"AGENT A LEVEL 2 {{ START -> tune {tasks} }}\n")


def evaluated(folder: Path) -> None:
    for name in ("a", "old", "new", "dear", "cheap", "repair"):
        (folder / f"{name}.spak").write_text(COUNT)
    (folder / "hidden").mkdir()
    (folder / "hidden/check.py").write_text('print(open("n.txt").read())\n')
    shell(folder, "mkdir ws && echo 1 > ws/a && tar czf files.tar.gz -C ws .")


def suite(folder: Path) -> None:
    """A suite of one case that experiments use: its split is drawn, and a sealed one is drawn again."""
    evaluated(folder)
    assert shell(folder, "spak run a.spak").returncode == 0
    while (
        "in the split sealed" in shell(folder, "spak suite keep latest --suite suites/a --name first").stdout
    ):
        shutil.rmtree(folder / "suites")
    check = '--check "python check.py" --output "5 passed"'
    done = shell(folder, f"spak suite seal first --suite suites/a --sealed hidden/ {check}")
    assert done.returncode == 0, done.stdout


def outside(folder: Path) -> None:
    suite(folder)
    (folder / "suites").rename(folder.parent / "suites")


def drawn(folder: Path) -> None:
    shutil.copytree(ROOT / "specs/examples", folder / "specs/examples")
    for name in ("old", "new", "spec"):
        (folder / f"{name}.spak").write_text(COUNT if name == "new" else ASK.format("Go."))


def past(folder: Path) -> None:
    (folder / "rules.mg").write_text(spec("history.md", "moved(To, Before)"))
    lines = spec("history.md", '"action": "transfer"')
    for name in ("events.jsonl", "rules.cases.jsonl"):
        (folder / name).write_text(lines)


def rules(folder: Path) -> None:
    (folder / "rules.mg").write_text(spec("policy.md", "safe(/read)."))


def refused(folder: Path) -> None:
    (folder / "notes.spak").write_text(spec("refused.md", "task notes"))
    (folder / "make.mg").write_text(spec("refused.md", "allowed_program("))


def ended(folder: Path) -> None:
    shutil.copy(ROOT / "specs" / "examples" / "hello.spak", folder)
    shell(folder, "spak run hello.spak")


def repaired(folder: Path) -> None:
    (folder / "shop.py").write_text("def total(items):\n    return 0\n")
    test = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
    (folder / "test_shop.py").write_text(test)


def begun(folder: Path) -> None:
    repaired(folder)
    assert shell(folder, "spak new mend").returncode == 0


def applied(folder: Path) -> None:
    (folder / "a.spak").write_text('task a { step w: tool.write_file { path: "n.txt" content: "x" } }\n')
    assert shell(folder, "spak run a.spak --workspace .").returncode == 0


def checkpointed(folder: Path) -> None:
    """A run in a checkpoint, and the log's key in a file."""
    applied(folder)
    (folder / "spak.toml").write_text('[checkpoints]\nlog = "example.com/team"\nto = ["~/evidence"]\n')
    assert shell(folder, "spak keys make").returncode == 0
    done = shell(folder, "spak ledger checkpoint")
    assert done.returncode == 0, done.stdout
    (folder / "log.key").write_text(done.stdout.partition("the key to check it with: ")[2].splitlines()[0])


def shop(folder: Path) -> None:
    """A small package with a test, whose code names a method with a type and without one."""
    files = {
        "src/shop/__init__.py": "",
        "src/shop/cart.py": "class Cart:\n    def total(self) -> int:\n        return 1\n\n"
        "    def pay(self) -> int:\n        return self.total()\n",
        "src/shop/mail.py": "from shop.cart import Cart\n\n\ndef receipt(cart: Cart) -> str:\n"
        '    return f"paid {cart.pay()}"\n',
        "src/shop/export.py": "def rows(carts):\n    return [cart.total() for cart in carts]\n",
        "tests/test_cart.py": "from shop.cart import Cart\n\n\ndef test_total() -> None:\n"
        "    assert Cart().total() == 1\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def clamped(folder: Path) -> None:
    project(folder)


def asked(folder: Path) -> None:
    """The project with a mistake, and a database beside its changed schema."""
    clamped(folder)
    users = "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT);"
    with sqlite3.connect(folder / "app.db") as db:
        db.executescript(f"{users} INSERT INTO users(name) VALUES ('a'), ('b');")
    db.close()
    (folder / "core.py").write_text("def rate():\n    return 2\n")
    (folder / "shop.py").write_text(
        "from core import rate\n\n\ndef list_price(n: int):\n    return rate() * n\n"
    )
    (folder / "schema.sql").write_text(users.replace("name TEXT", "name TEXT, mail TEXT"))


GROUND: dict[str, Callable[[Path], None]] = {
    "README.md": readme, "checkpoints.md": checkpointed, "cli.md": edited, "evaluate.md": evaluated,
    "first-spec.md": repaired, "graph.md": drawn, "history.md": past, "policy.md": rules,
    "packs.md": ended, "refused.md": refused, "repair.md": clamped, "strategies.md": asked,
    "world.md": shop,
}  # fmt: skip
LATER: dict[str, Callable[[Path], None]] = {
    "spak eval new.spak": suite, "spak run repair": outside, "spak show  ": applied,
    "spak keys make     ": applied, "spak show RUN": approvals, "spak run mend.spak": begun,
}  # fmt: skip
"""Blocks that go on from where the page is by then, by how they begin."""


# ---- the blocks -----------------------------------------------------------------------------------------


def prepared(folder: Path, block: Block) -> Path:
    folder.mkdir()
    begin = re.sub(r"^\$ ", "", block.text.lstrip())
    ground = next((made for words, made in LATER.items() if begin.startswith(words)), GROUND.get(block.page))
    if ground is not None:
        ground(folder)
    return folder


def lines(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block, and the lines that it prints as the block has them."""
    text = re.sub(r"\\\n\s*", "", block.text)
    prompted = bool(re.search(r"^\s*\$ ", text, re.M))
    command, output = "", list[str]()
    for line in text.splitlines():
        if line.strip().startswith("$ ") or not prompted:
            if command:
                yield command, output
            command, output = line.strip().removeprefix("$ "), []
        elif line.strip():
            output.append(line.strip())
    if command:
        yield command, output


@pytest.mark.parametrize("block", RUN, ids=lambda block: block.place)
def test_a_block_of_commands_runs_as_it_is_pasted(block: Block, tmp_path: Path) -> None:
    ends = ENDS.search(block.comment)
    fine = {0, 4, *map(int, ends[1].split(",") if ends else ())}
    folder = prepared(tmp_path / "0", block)
    for number, (line, output) in enumerate(lines(block)):
        if APART in block.comment and number:
            folder = prepared(tmp_path / str(number), block)
        done = shell(folder, re.sub(r"\bRUN\b", "latest", line))
        assert done.returncode in fine, f"{line}\n{done.stdout}"
        if block.info.startswith("console"):
            assert [words for words in output if words not in done.stdout] == [], done.stdout


@pytest.mark.parametrize("block", TABLES, ids=lambda block: block.place)
def test_a_block_of_settings_is_taken(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "toolchain"
    for folder in (tools, tmp_path / "gen"):
        folder.mkdir()
    (tmp_path / "law.mg").write_text('allowed_program("make").\n')
    for name in ("spak/anthropic.key", "team/token"):
        key = tmp_path / ".config" / name
        key.parent.mkdir(parents=True)
        key.write_text("a-key-of-nobody\n")
        key.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "spak.toml").write_text(block.text.replace("/opt/toolchain", str(tools)))
    chosen = config.settings(tmp_path, {"DEPLOY_KEY": "a-key-of-nobody"})
    config.law(chosen)
    assert chosen != config.settings(tools, {})


@pytest.mark.parametrize("block", LAWS, ids=lambda block: block.place)
def test_a_law_loads_at_its_level(block: Block) -> None:
    word = block.info.partition(" ")[2]
    if "permitted(" not in block.text or "Decl tool(" in block.text:  # a part of the language, or a law whole
        above = constitution() if word or "forbidden(" in block.text else {}
        assert load({**({} if "Decl tool(" in block.text else above), "page.mg": block.text}).clauses
        return
    own = {"page.mg": block.text}
    law = {"": Law(constitution()), "team": Law(constitution(), team=own)}.get(word, Law(constitution(), own))
    assert compiled(law, "" if word else block.text, {}).clauses


def test_what_is_not_run_says_why() -> None:
    """They are few, and each has a reason; a block that was forgotten is one that a machine here can run."""
    for block in LEFT:
        print(f"{block.place}: {block.reason}")
        assert len(block.reason.split()) >= 3
    assert 0 < len(LEFT) <= 24
    assert len(RUN) >= 15 and len(TABLES) >= 5 and len(LAWS) >= 14
