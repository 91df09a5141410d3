"""The page Code: what it shows of a symbol, what of hostile code, and how a worker comes to have read it."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from jobs_kit import worked
from run_rows_kit import begun
from sources_kit import Repository
from spakweb.store.jobs.models import Job
from spakweb.store.ledger.workspaces import folder_of
from spakweb.store.runs.models import Run
from spakweb.store.sources import code_index
from spakweb.store.sources.models import Source
from spakweb.work.runs import files
from spakweb.work.sources import actions, reading, run_reading

HERE = "/t/kernel-tuners/sources/s/app/"
CART = b"""class Cart:
    def total(self) -> int:
        return 3

    def pay(self) -> int:
        return self.total()
"""
MAIL = b"""from cart import Cart


def receipt(cart: Cart) -> str:
    return str(cart.pay())


def rows(things):
    return things.total()
"""
TEST = b"""from cart import Cart


def test_total(cart: Cart) -> None:
    assert cart.total() == 3
"""
FILES = {"cart.py": CART, "mail.py": MAIL, "test_cart.py": TEST}
Read = Callable[[dict[str, bytes]], Source]


@pytest.fixture
def read(cast: Any, settings: Any, tmp_path: Path) -> Read:
    """`read({"cart.py": b"..."})`: a source of the team whose code was read, with these files."""
    settings.DATA_DIR = tmp_path / "data"

    def made(files: dict[str, bytes]) -> Source:
        folder = tmp_path / "files"
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        folder.mkdir(exist_ok=True)
        source = actions.add(cast["alice"], cast.team, "app", "https://git.example.org/app.git", ["main"])
        source.code = code_index.keep(lambda into: reading.index(folder, into))
        source.code_ref, source.code_commit = "refs/heads/main", "c" * 40
        source.save()
        return source

    return made


def page(cast: Any, words: str = "", who: str = "vera") -> str:
    answer = cast.client(who).get(f"{HERE}code/?q={quote(words)}")
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def rows(shown: str) -> list[str]:
    """The rows of all tables, as text."""
    found = re.findall(r"<tr>(.*?)</tr>", shown, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in found]


def test_a_symbol_with_its_callers_impact_tests_and_text(cast: Any, read: Read) -> None:
    read(FILES)
    shown = page(cast, "cart.py#Cart.total")
    found = rows(shown)
    assert "Cart.pay directly cart.py:6 Cart.total /self" in found
    assert "receipt through others mail.py:5 Cart.pay /type" in found
    assert "test_total directly test_cart.py:5 Cart.total /type" in found
    assert any(row.startswith("rows perhaps mail.py:9 it names total, and what") for row in found)
    assert any(
        row.startswith("Cart.pay uses cart.py:6 /self the first parameter of a method") for row in found
    )
    assert "3 symbols, 2 directly, in 3 files; 1 more may be" in shown
    assert "test_cart.py::test_total" in shown
    assert (
        "3 files: 0 stale, 0 with parts that do not parse, 0 known by name only, 1 unresolved place" in shown
    )
    assert '<li data-line="3"><code>        return 3</code></li>' in shown
    drawing = shown[shown.index('<svg class="spak-graph"') :]
    boxes = re.findall(r'<a class="(edge[^"]*)" href="([^"]*)">', drawing)
    assert dict(map(reversed, boxes)) == {  # type: ignore[arg-type]
        "?q=cart.py%23Cart.pay": "edge",
        "?q=test_cart.py%23test_total": "edge",
        "?q=mail.py%23rows": "edge guessed",
    }
    assert "mail.py:9 may use: it names total" in drawing, "the reason is in the box too"


@pytest.mark.parametrize(
    "words", ["", "cart.py#Cart.total", "cart.py", "lib/", "same", "nothing"],
    ids=["overview", "symbol", "file", "folder", "ambiguous", "unknown"],
)  # fmt: skip
def test_every_answer_says_what_it_covers(cast: Any, read: Read, words: str) -> None:
    odd = {"lib/a.py": b"def same(): ...\n", "lib/b.py": b"def same(): ...\n", "latin.py": b"x = '\xe9'\n"}
    read({**FILES, **odd, "broken.py": b"def f(:\n"})
    shown = " ".join(page(cast, words).split())
    assert "6 files: 0 stale, 1 with parts that do not parse, 1 known by name only" in shown


def test_what_a_symbol_uses_is_on_the_right(cast: Any, read: Read) -> None:
    read(FILES)
    shown = page(cast, "receipt")
    assert (
        "Cart.pay uses mail.py:5 /type a declared type, or the class that was called, says what it is"
        in rows(shown)
    )
    assert "total names (not certain) mail.py:9 it names total, and what that is there is not known" in rows(
        page(cast, "mail.py#rows")
    )


def test_a_file_a_name_of_two_symbols_and_nothing(cast: Any, read: Read) -> None:
    read({**FILES, "other.py": b"def total():\n    return 1\n", "lib/a.py": b"A = 1\n"})
    assert "test_cart.py::test_total" in page(cast, "./cart.py") and "the whole file" in page(cast, "cart.py")
    assert 'href="?q=lib/a.py"' in page(cast, "lib/") and "Files of" in page(cast, "lib/")
    several = page(cast, "total")
    assert "Choose one" in several and 'href="?q=other.py%23total"' in several
    missing = page(cast, "cart.py#Cart.totl")
    assert "There is no symbol" in missing and "near: cart.py#Cart.total" in missing
    assert "there is no symbol" in page(cast, "\0'\"<b>%_").lower()
    assert 'href="?q=cart.py%23Cart"' in page(cast), "without a question: what most depends on"


def test_hostile_code_is_text(cast: Any, read: Read, tmp_path: Path) -> None:
    (tmp_path / "out.py").write_bytes(b"def outside():\n    return 'not of the repository'\n")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "link.py").symlink_to(tmp_path / "out.py")
    name = 'x"><script>alert(1)</script>.py'
    long = "f" * 5000
    read(
        {
            name: b"def f():\n    return '</code><script>alert(2)</script>\xe2\x80\xae'\n",
            "many.py": f"def {long}():\n    return 1\n".encode() + b"# " + b"y" * 9000,
            "binary.py": b"def g():\n    return 1\n\0",
            "huge.py": b"def h():\n    return 1\n" + b"# fill\n" * 400_000,
            "broken.py": b"def i(:\n  (((\n",
        }
    )
    client = cast.client("vera")
    known = ("", f"{name}#f", name, f"many.py#{long}", "broken.py")
    for words in (*known, "link.py#outside", "binary.py#g", "huge.py", "../out.py", "/etc/passwd"):
        answer = client.get(f"{HERE}code/", {"q": words})
        text = answer.content.decode()
        assert answer.status_code == 200, words
        assert "<script>alert" not in text and "not of the repository" not in text and "\u202e" not in text
    assert "⟨U+202E⟩" in client.get(f"{HERE}code/", {"q": f"{name}#f"}).content.decode()
    covers = client.get(f"{HERE}code/", {"q": "broken.py"}).content.decode()
    assert "2 known by name only" in covers and "1 with parts that do not parse" in covers


def test_a_repository_without_code(cast: Any, read: Read) -> None:
    read({"README.md": b"# App\n"})
    assert "Nothing is known of this code" in page(cast)


def test_who_sees_it(cast: Any, read: Read) -> None:
    read(FILES)
    assert cast.client("vera").post(f"{HERE}code/read/").status_code == 302
    for address in (f"{HERE}code/", f"{HERE}code/?q=Cart"):
        assert cast.client("charlie").get(address).status_code == 404
    Job.objects.all().delete()
    assert cast.client("charlie").post(f"{HERE}code/read/").status_code == 404
    assert not Job.objects.exists()
    assert f'href="{HERE}code/"' in cast.client("vera").get(HERE).content.decode()


def test_an_index_that_is_gone_or_of_another_version_is_read_again(
    cast: Any, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = read(FILES)
    from spak.world import store

    monkeypatch.setattr(store, "VERSION", store.VERSION + 1)
    assert "The code was not read yet" in page(cast, "Cart")
    code_index.remove(source.code)
    code_index.remove(source.code)
    assert "The code was not read yet" in page(cast, "Cart")


def test_a_damaged_index_is_made_anew(cast: Any, source: Source, repository: Repository) -> None:
    repository.commit(FILES)
    reading.ask(cast["vera"], source)
    worked(reading.READ)
    source.refresh_from_db()
    folder = code_index.of_source(source)
    assert folder is not None
    file = folder / code_index.INDEX
    file.write_bytes(file.read_bytes()[:8192] + b"\0" * (file.stat().st_size - 8192))
    assert "The code was not read yet" in page(cast, "cart.py#Cart.total")
    reading.ask(cast["vera"], source)
    worked(reading.READ)
    assert "Cart.pay" in page(cast, "cart.py#Cart.total")
    source.refresh_from_db()
    file = code_index.of_source(source) / code_index.FILES  # type: ignore[operator]
    file.write_bytes(file.read_bytes().replace(file.read_bytes()[40:60], b"\xff" * 20))
    assert "The text is not shown" in page(cast, "cart.py#Cart.total")
    reading.ask(cast["vera"], source)
    worked(reading.READ)
    assert "return 3" in page(cast, "cart.py#Cart.total")


def test_a_host_that_shares_no_disk_gets_a_copy(cast: Any, read: Read, settings: Any, tmp_path: Path) -> None:
    settings.STORAGE = "database"
    settings.MEDIA_ROOT = tmp_path / "media"
    source = read(FILES)
    settings.DATA_DIR = tmp_path / "elsewhere"
    assert "Cart.pay" in page(cast, "cart.py#Cart.total")
    with pytest.raises(StopIteration):
        code_index.keep(lambda into: next(iter(())))
    assert [path.name for path in (settings.DATA_DIR / "code").iterdir()] == [source.code]
    source.delete()
    assert list((settings.DATA_DIR / "code").iterdir()) == []
    assert list((tmp_path / "media" / "code").iterdir()) == []


def test_a_worker_reads_the_ref_and_what_it_moved_to(
    cast: Any, source: Source, repository: Repository, settings: Any
) -> None:
    first = repository.commit(FILES)
    bob = cast.client("bob")
    assert "Read the code" in page(cast)
    assert bob.post(f"{HERE}code/read/").status_code == 302
    assert "A worker is reading the code" in page(cast)
    assert worked(reading.READ) == [str(source.pk)]
    done = bob.get(f"{HERE}code/?q=Cart", headers={"HX-Request": "true"}).content.decode()
    assert f'The code was read. <a href="{HERE}code/?q=Cart">' in done
    shown = page(cast, "cart.py#Cart.total")
    assert first[:12] in shown and "Cart.pay" in shown and "A worker is reading" not in shown
    source.refresh_from_db()
    key, at = source.code, source.code_at

    bob.post(f"{HERE}code/read/")
    worked(reading.READ)
    source.refresh_from_db()
    assert source.code == key and source.code_at > at, "the same commit is read once"

    second = repository.commit({**FILES, "cart.py": CART.replace(b"pay", b"buy")}, parent=first)
    assert first[:12] in page(cast, "Cart"), "it says which commit it is of"
    bob.post(f"{HERE}code/read/")
    worked(reading.READ)
    shown = page(cast, "cart.py#Cart.total")
    assert second[:12] in shown and "Cart.buy" in shown and "Cart.pay" not in shown
    source.refresh_from_db()
    kept = [path.name for path in (settings.DATA_DIR / "code").iterdir()]
    assert kept == [source.code]


def test_what_cannot_be_read_is_said_and_what_was_read_stays(
    cast: Any, source: Source, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading.ask(cast["vera"], source)
    worked(reading.READ)
    assert "The code could not be read: git.ref_unknown" in page(cast)
    first = repository.commit(FILES)
    reading.ask(cast["vera"], source)
    worked(reading.READ)
    monkeypatch.setattr(reading, "MOST_BYTES", 100)
    repository.commit({**FILES, "more.py": CART}, parent=first)
    reading.ask(cast["vera"], source)
    worked(reading.READ)
    shown = page(cast, "cart.py#Cart.total")
    assert "world.too_large" in shown and first[:12] in shown and "Cart.pay" in shown


WRITES = """\
task Change {
  step add: tool.write_file { path: "extra.py" content: "from mail import receipt" }
  success: file_contains("extra.py", "receipt")
}
"""


def test_the_code_of_a_run_and_what_changed_since(
    cast: Any,
    source: Source,
    repository: Repository,
    run_from: Callable[..., Run],
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository.commit(FILES)
    run = run_from(text=WRITES)
    here = f"/t/kernel-tuners/runs/{run.key}/code/"
    vera = cast.client("vera")
    assert f'href="{here}"' in vera.get(f"/t/kernel-tuners/runs/{run.key}/?tab=workspace").content.decode()
    assert "The code was not read yet" in vera.get(here).content.decode()
    assert [cast.client("charlie").get(here).status_code, vera.post(f"{here}read/").status_code] == [404, 302]
    assert "A worker is reading the code" in vera.get(here).content.decode()
    before, _ = files.roots(run)
    with monkeypatch.context() as patch:
        patch.setattr(files, "roots", lambda run: (before, before))
        assert worked(run_reading.READ) == [run.key]
    asked = {"q": "cart.py#Cart.total"}
    shown = html.unescape(vera.get(here, asked).content.decode())
    assert "Covers 3 files: 1 stale" in shown and "1 source file changed since the code was read" in shown
    assert "receipt through others mail.py:5 Cart.pay /type" in rows(shown)

    settings.STORAGE = "database"
    vera.post(f"{here}read/")
    worked(run_reading.READ)
    shown = vera.get(here, asked).content.decode()
    assert "Covers 4 files: 0 stale" in shown and "changed since" not in shown
    kept = folder_of(run.key) / "code"
    assert len(list(kept.iterdir())) == 1, "the earlier reading is gone"
    shutil.rmtree(kept)
    assert "Covers 4 files" in vera.get(here, asked).content.decode(), "a copy came from the run's blobs"


def test_a_run_without_files(cast: Any) -> None:
    run = begun(cast.team, cast.spec.head, "r-1")
    shown = cast.client("vera").get(f"/t/kernel-tuners/runs/{run.key}/code/").content.decode()
    assert "There are no files yet" in shown and "Read the code" not in shown
