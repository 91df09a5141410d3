"""Which modules of a user's environments count as copies of the project."""

from __future__ import annotations

from pathlib import Path

from spak.proposers.repair.installed import copies

SITE = ".venv/lib/python3.11/site-packages"


def laid_out(place: Path, *paths: str) -> Path:
    """Empty files, and for a path that ends with a slash an empty folder."""
    place.mkdir(exist_ok=True)
    for path in paths:
        target = place / path
        (target if path.endswith("/") else target.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            target.touch()
    return place


def test_what_has_the_name_of_a_module_of_the_project_is_a_copy(tmp_path: Path) -> None:
    files = (
        "shop/cart.py",
        "src/rates/at.py",
        "tools/pyproject.toml",
        "tools/src/gauge.py",
        "tests/test_a.py",
    )
    workspace = laid_out(tmp_path / "ws", *files, ".venv/", "docs/deep/", "shop/sub/inner.py")
    library = (
        "shop/cart.py", "rates/at.py", "gauge.py", "gauge.cpython-311-x86_64-linux-gnu.so", "shop-1.2.egg",
        "__pycache__/gauge.cpython-311.pyc", "__pycache__/six.cpython-311.pyc", "shop-1.2.dist-info/RECORD",
        "six.py", "shopping/a.py", "cart.py", "inner.py", "tests/test_a.py",
    )  # fmt: skip
    original = laid_out(tmp_path / "home", *(f"{SITE}/{path}" for path in library))
    (original / ".venv/lib64").symlink_to("lib")
    assert list(copies(workspace, original)) == [
        f"{SITE}/__pycache__/gauge.cpython-311.pyc",
        f"{SITE}/gauge.cpython-311-x86_64-linux-gnu.so",
        f"{SITE}/gauge.py",
        f"{SITE}/rates",
        f"{SITE}/shop",
        f"{SITE}/shop-1.2.egg",
    ]


def test_an_environment_that_is_not_shown_or_lies_outside_has_none(tmp_path: Path) -> None:
    workspace = laid_out(tmp_path / "ws", "shop.py", "env/", "venv/kept.py")
    original = laid_out(
        tmp_path / "home", f"{SITE}/shop.py", "venv/lib/python3.11/site-packages/shop.py", "env/"
    )
    outside = laid_out(tmp_path / "else", "site-packages/shop.py")
    (original / "env/lib").mkdir()
    (original / "env/lib/python3.11").symlink_to(outside)
    assert list(copies(workspace, original)) == []
