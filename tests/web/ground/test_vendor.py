"""What is vendored is what it says it is: hashes, licences, and nothing that is not listed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from platform_kit import ROOT
from spak.lang.graph import STYLE

FOLDERS = (ROOT / "static" / "vendor", ROOT / "tests" / "vendor")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_files_have_their_hashes_and_licences(folder: Path) -> None:
    listed = json.loads((folder / "VENDOR.json").read_text())
    for item in listed:
        assert {"name", "version", "licence", "sha256", "source"} <= set(item)
        assert hashlib.sha256((folder / item["file"]).read_bytes()).hexdigest() == item["sha256"], item[
            "file"
        ]
        assert (folder / item["licence_file"]).read_text().strip()
    told = {item["file"] for item in listed} | {item["licence_file"] for item in listed} | {"VENDOR.json"}
    assert {file.name for file in folder.iterdir()} == told


def test_the_style_of_graphs_is_the_librarys() -> None:
    assert (ROOT / "static" / "css" / "generated" / "graph.css").read_text().endswith(STYLE)


def test_no_page_has_a_script_or_a_style_in_it() -> None:
    for file in (ROOT / "templates").rglob("*.html"):
        text = file.read_text()
        for word in (
            "<style",
            ' style="',
            "onclick=",
            "onload=",
            "onsubmit=",
            "hx-on",
            "javascript:",
            "https://",
        ):
            assert word not in text, f"{file.name}: {word}"
        for part in text.split("<script")[1:]:
            head = part.split(">")[0]
            assert "src=" in head or 'type="application/json"' in head, file.name
