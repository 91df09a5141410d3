"""The scripts and sheets of pages, put together from plain files: complete, in order, never stale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from spakweb.ground.web import bundles
from spakweb.ground.web.bundles import BadBundle, make

ROOT = Path(__file__).resolve().parents[3]
STATIC = ROOT / "static"


def tree(folder: Path, **modules: str) -> Path:
    (folder / "js" / "editor").mkdir(parents=True)
    for name, text in modules.items():
        (folder / "js" / "editor" / f"{name}.js").write_text(text)
    return folder


def test_a_module_comes_after_what_it_imports_and_keeps_its_names(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        main='import { add as plus } from "./sums.js";\nimport * as all from "./sums.js";\n'
        'import { X } from "../../vendor/x.js";\nconst hidden = plus(1, all.one);\n',
        sums="const hidden = 1;\nexport const one = hidden;\n"
        "export function add(a, b) {\n  return a + b;\n}\n",
    )
    text, files = make("bundles/editor.js", root)
    assert text == (
        'import * as vendor0 from "../vendor/x.js";\n'
        "// js/editor/sums.js\nconst js_editor_sums = (() => {\n"
        "const hidden = 1;\nconst one = hidden;\nfunction add(a, b) {\n  return a + b;\n}\n\n"
        "return { one, add };\n})();\n"
        "// js/editor/main.js\nconst js_editor_main = (() => {\n"
        "const { add: plus } = js_editor_sums;\nconst all = js_editor_sums;\nconst { X } = vendor0;\n"
        "const hidden = plus(1, all.one);\n\nreturn {  };\n})();\n"
    )
    assert [file.name for file in files] == ["sums.js", "main.js"]


@pytest.mark.parametrize(
    "text",
    ['import "./other.js";\n', "export default 1;\n", "export let x = 1;\n", "export { x };\n",
     "import x from './x.js'\n"],
    ids=["effects", "default", "let", "list", "single quotes"],
)  # fmt: skip
def test_what_a_bundle_cannot_hold_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadBundle, match=r"js/editor/main\.js: "):
        make("bundles/editor.js", tree(tmp_path, main=text))


def test_a_circle_is_refused(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        main='import { a } from "./a.js";\n',
        a='import { b } from "./main.js";\nexport const a = 1;\n',
    )
    with pytest.raises(BadBundle, match="imports itself"):
        make("bundles/editor.js", root)


@pytest.mark.parametrize("name", bundles.NAMES)
@pytest.mark.django_db  # a closed response looks after connections
def test_every_bundle_is_found_and_served_compressed(name: str) -> None:
    found = finders.find(name)
    assert found
    text, files = make(name, STATIC)
    assert Path(found).read_text() == text
    assert files
    plain = Client().get(f"/static/{name}")
    packed = Client().get(f"/static/{name}", headers={"accept-encoding": "gzip"})
    assert (plain.status_code, packed.status_code) == (200, 200)
    assert plain.content == text.encode()
    assert packed["Content-Encoding"] == "gzip"
    assert int(packed["Content-Length"]) == len(packed.content) < len(text) / 2
    assert "Accept-Encoding" in packed["Vary"]


def test_a_change_of_a_source_is_seen_at_once(tmp_path: Path) -> None:
    root = tree(tmp_path / "static", main="const a = 1;\n")
    finder = bundles.Bundles()
    finder.root, finder.storage = root, type(finder.storage)(location=tmp_path / "made")
    before = Path(finder.find("bundles/editor.js")).read_text()
    (root / "js/editor/main.js").write_text("const a = 2;\n")
    after = Path(finder.find("bundles/editor.js")).read_text()
    assert "a = 1" in before and "a = 2" in after
    assert finder.find("bundles/nothing.js") == []
    assert finder.find("css/shell.css") == []


def test_pages_name_every_bundle_and_no_source() -> None:
    pages = "".join(file.read_text() for file in (ROOT / "templates").rglob("*.html"))
    named = set(re.findall(r"static '(bundles/[^']+)'", pages))
    assert named == set(bundles.NAMES)
    assert set(re.findall(r"static '(js/[^']+)'", pages)) == {"js/shell.js", "js/start/early.js"}
