"""The editor as its stories and its bench drive it: `Person` is a signed-in window with an editor in it."""

from __future__ import annotations

import itertools
import re

from playwright.sync_api import expect

from platform_kit import Watched

READY = "#editor[data-ready=true]"
NUMBERS = itertools.count()


class Person(Watched):
    """Who writes specs."""

    size = (1360, 820)

    def make(self, text: str) -> str:
        """A spec with that text; its path."""
        where, asked = f"{self.url}/t/demo-team/specs/new/", self.context.request
        token = re.findall(r'csrfmiddlewaretoken" value="(\w+)', asked.get(where).text())[0]
        form = {"csrfmiddlewaretoken": token, "name": f"spec {next(NUMBERS)}", "text": text}
        answer = asked.post(where, form=form, headers={"Referer": where}, max_redirects=0)
        assert answer.status == 302, answer.text()
        return str(answer.headers["location"]).removesuffix("edit/")

    def open(self, path: str) -> None:
        self.go(f"{path}edit/")
        self.page.wait_for_selector(READY)

    def editor(self, text: str) -> str:
        path = self.make(text)
        self.open(path)
        return path

    @property
    def text(self) -> str:
        """The text as the editor has it."""
        return self.page.evaluate(
            "() => document.querySelector('#text-pane .cm-content').cmTile.view.state.doc.toString()"
        )

    def cursor(self, word: str, after: bool = True) -> None:
        """The text cursor behind (or before) the first place of a word, by the keyboard's focus."""
        at = self.text.index(word) + (len(word) if after else 0)
        self.page.evaluate(
            """(at) => { const { view } = document.querySelector('#text-pane .cm-content').cmTile;
            view.focus(); view.dispatch({ selection: { anchor: at }, scrollIntoView: true }); }""",
            at,
        )

    def replace(self, old: str, new: str) -> None:
        """Type over the first place of a text, in one change: no draft holds half of it."""
        at = self.text.index(old)
        self.page.evaluate(
            """([anchor, head]) => { const { view } = document.querySelector('#text-pane .cm-content').cmTile;
            view.focus(); view.dispatch({ selection: { anchor, head }, scrollIntoView: true }); }""",
            [at, at + len(old)],
        )
        if new:
            self.page.keyboard.insert_text(new)
        else:
            self.page.keyboard.press("Backspace")

    def looked(self) -> None:
        """Wait until what is shown is about the text as it stands: from a change on the editor is busy."""
        expect(self.page.locator("#editor")).not_to_have_attribute("aria-busy", "true")

    def node(self, name: str):
        return self.page.locator(f'#graph-pane [data-task="{name}"]')
