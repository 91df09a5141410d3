"""Files that are made from others are as they would be made now; what others wrote is as it was vendored."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spakweb.face.editor import write_graph_css, write_words_js

ROOT = Path(__file__).resolve().parents[3]
VENDOR = ROOT / "static/vendor"
ENTRIES = json.loads((VENDOR / "VENDOR.json").read_text())
OWN = sorted((ROOT / "static/js/editor").rglob("*.js"))


def test_the_words_are_those_of_the_language() -> None:
    assert write_words_js.PATH.read_text() == write_words_js.generate(), (
        "run: python -m spakweb.face.editor.write_words_js"
    )


def test_the_graphs_look_is_that_of_the_language() -> None:
    assert write_graph_css.PATH.read_text() == write_graph_css.generate(), (
        "run: python -m spakweb.face.editor.write_graph_css"
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_a_vendored_file_is_the_one_that_was_listed(entry: dict[str, str]) -> None:
    file = VENDOR / entry["file"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == entry["sha256"]
    assert entry["version"] and entry["licence"] and entry["source"].startswith("https://")


@pytest.mark.parametrize("name", ["codemirror", "codemirror-merge"])
def test_a_bundle_brings_every_licence_and_is_what_the_lock_says(name: str) -> None:
    (entry,) = [item for item in ENTRIES if item["name"] == name]
    text = (VENDOR / entry["licence_file"]).read_text()
    locked = json.loads((ROOT / "frontend/package-lock.json").read_text())["packages"]
    for package in entry["packages"]:
        assert f"{package['name']} {package['version']}" in text
        assert package["licence"] == "MIT"
        assert locked[f"node_modules/{package['name']}"]["version"] == package["version"]


def test_the_lock_names_no_place_to_download_from() -> None:
    assert "resolved" not in (ROOT / "frontend/package-lock.json").read_text()


def test_a_production_server_gets_every_script_under_a_name_with_its_hash(tmp_path: Path) -> None:
    settings = {
        "SPAK_WEB_PRODUCTION": "true",
        "SPAK_WEB_SECRET_KEY": "only-for-this-test-and-of-no-use-anywhere-else-1234567890",
        "SPAK_WEB_HOSTS": "example.org",
        "SPAK_WEB_DATA": str(tmp_path),
        "SPAK_WEB_DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
    }
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPAK_", "DJANGO_"))}
    command = [sys.executable, str(ROOT / "manage.py"), "collectstatic", "--noinput", "-v", "0"]
    done = subprocess.run(command, cwd=ROOT, env=kept | settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1500:]
    (main,) = (tmp_path / "static/bundles").glob("editor.*.js")
    assert Path(f"{main}.gz").exists()
    found = re.findall(r'from "([^"]+)"', main.read_text())
    assert found
    for name in found:
        assert re.search(r"\.[0-9a-f]{12}\.js$", name), name
        assert (main.parent / name).exists()


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.name)
def test_own_scripts_make_no_code_and_no_markup_of_text(file: Path) -> None:
    text = file.read_text()
    assert not re.search(
        r"\beval\b|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write", text
    )
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "") and "https://" not in text
    assert len(text.splitlines()) <= 500
