"""Texts of a folder that come in: `take(folder, commit, files)` makes versions and patches of them.

Each file is one transaction: it is a version, a patch, or a line that says why not. A file whose text has
errors is not saved; as one may import another of the same push, those with errors are tried again after the
others. A file that was renamed, as its text shows, stays the file of its spec. Where the spec is protected,
or changed too, the text becomes a patch and nothing is written over. What is to go out is given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from typing import Any

from django.db import transaction

from spak.errors import UserError
from spakweb.ground.teams.law import law_of
from spakweb.ground.text import digest
from spakweb.store.folders.models import Folder, FolderFile
from spakweb.store.reviews.models import Patch
from spakweb.store.specs.facts import findings
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.store.specs.team_files import TeamFiles, slug_of
from spakweb.work.folders.plan import Act, act
from spakweb.work.folders.queue import renew
from spakweb.work.folders.reading import ENDING, Commit, Files
from spakweb.work.jobs.hold import Hold
from spakweb.work.reviews import actions as reviews
from spakweb.work.specs import widening
from spakweb.work.specs.actions import Stale, create_spec, save_version

QUIET = ("created", "changed", "sent", "removed", "moved")
"""What needs no look afterwards."""
ALIKE = 0.75
"""The share of its lines that a renamed file has kept at least; git takes half."""
MOST_PAIRS = 400
"""Of more pairs of an old and a new file only equal texts are a rename."""


@dataclass(frozen=True, slots=True)
class Line:
    """What is said of one file."""

    path: str
    what: str
    words: str
    spec: str = ""
    pull_url: str = ""
    """Where its pull request is."""

    def to_json(self) -> dict[str, str]:
        """As the row of the folder keeps it."""
        return asdict(self)


class _Invalid(Exception):
    """The text has errors."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was done, and which files are to go out."""

    lines: list[Line]
    give: list[FolderFile]


def take(folder: Folder, commit: Commit, files: Files, hold: Hold) -> Taken:
    """The hold is renewed before each file, and confirmed at the end of its transaction.

    Raises: Lost, RunError `folder.late`; PermissionDenied, Http404 where the folder's person may not save any
    more.
    """
    return _Taking(folder, commit, files, hold).all()


class _Taking:
    def __init__(self, folder: Folder, commit: Commit, files: Files, hold: Hold) -> None:
        self.folder, self.commit, self.files, self.hold = folder, commit, files, hold
        self.team = folder.team
        rows = folder.files.select_related("spec__head", "spec__team", "base", "seen", "patch")
        self.rows = {row.path: row for row in rows}
        self.give: list[FolderFile] = []

    def all(self) -> Taken:
        lines = [Line(path, "wrong", words) for path, words in sorted(self.files.wrong.items())]
        lines += self._moved()
        left = dict(sorted(self.files.texts.items()))
        errors: dict[str, str] = {}
        tried = None
        while left and len(left) != tried:  # one may import another that comes after it
            tried, errors = len(left), {}
            for path, text in list(left.items()):
                renew(self.hold)
                try:
                    line = self._one(path, text)
                except _Invalid as why:
                    errors[path] = str(why)
                    continue
                del left[path]
                lines += [line] if line is not None else []
        lines += [Line(path, "invalid", words, self._slug(path)) for path, words in errors.items()]
        for path in sorted(self.rows.keys() - self._paths()):
            renew(self.hold)
            line = self._absent(self.rows[path])
            lines += [line] if line is not None else []
        return Taken(lines, self.give)

    def _moved(self) -> list[Line]:
        """Files that have another name now: each new one has the text of one that is gone, or most of it."""
        gone = [row for path, row in sorted(self.rows.items()) if row.there and path not in self._paths()]
        new = {path: text for path, text in self.files.texts.items() if path not in self.rows}
        lines = []
        texts = {row.path: text for row in gone if (text := _text(row))}
        for old, path in renamed(texts, new):
            row = self.rows[old]
            named = Spec.objects.filter(team=self.team, slug=slug_of(_name(path))).first()
            if named is not None and named.pk != row.spec_id:
                continue
            renew(self.hold)
            with transaction.atomic():
                row.path = path
                row.save(update_fields=["path"])
                self.hold.confirm()
            self.rows[path] = self.rows.pop(old)
            words = f"The file was renamed, it was {old}: the spec keeps its name and its versions."
            lines.append(Line(path, "moved", words, row.spec.slug))
        return lines

    def _paths(self) -> set[str]:
        return {*self.files.texts, *self.files.wrong}

    def _slug(self, path: str) -> str:
        return self.rows[path].spec.slug if path in self.rows else ""

    def _one(self, path: str, text: str) -> Line | None:
        """Raises: _Invalid."""
        try:
            with transaction.atomic():
                row = self.rows.get(path)
                line = self._first(path, text) if row is None else self._again(row, text)
                self.hold.confirm()
                return line
        except UserError as error:
            return Line(path, "wrong", f"{error.code}: {error.message}", self._slug(path))

    def _first(self, path: str, text: str) -> Line | None:
        """A file that is seen for the first time."""
        name = _name(path)
        slug = slug_of(name)
        if not slug:
            return Line(path, "wrong", "A spec needs a name with a letter or digit.")
        spec = Spec.objects.select_related("head", "team").filter(team=self.team, slug=slug).first()
        if spec is None:
            self._check(TeamFiles(self.team, slug), text)
            message = self._message("Created from")
            spec = create_spec(self.folder.person, self.team, name, text, message, self._origin(path))
            self._keep(path, spec, digest(text), spec.head, spec.head)
            return Line(path, "created", "The spec was created.", spec.slug)
        taken = FolderFile.objects.select_related("folder__source").filter(spec=spec).first()
        if taken is not None:
            words = f"The spec {slug} is the file {taken.path} of {taken.folder.source}."
            return Line(path, "wrong", words, slug)
        if spec.archived_at is not None:
            return Line(path, "wrong", "The spec of this name is archived.", slug)
        assert spec.head is not None
        if digest(text) == spec.head.content_hash:
            self._keep(path, spec, digest(text), spec.head, spec.head)
            return None
        self._check(TeamFiles.of(spec), text)
        row = self._keep(path, spec, digest(text), None, spec.head)
        made = self._propose(row, text, spec.head)
        words = f"The team has a spec of this name with another text: patch {made.number} has the file's."
        return Line(path, "conflict", words, slug)

    def _again(self, row: FolderFile, text: str) -> Line | None:
        """A file that is known."""
        spec, now = row.spec, digest(text)
        head = spec.head
        assert head is not None
        if spec.archived_at is not None:
            return Line(row.path, "left", "The spec is archived: nothing comes in or goes out.", spec.slug)
        match act(now, row.there, _hash(row.base), _hash(row.seen), head.content_hash):
            case Act.SAME:
                self._same(row, now, head)
                return None
            case Act.TAKE:
                self._check(TeamFiles.of(spec), text)
                return self._changed(row, text)
            case Act.BOTH:
                self._check(TeamFiles.of(spec), text)
                return self._to_patch(row, text, head, conflict=True)
            case Act.GIVE:
                return self._goes_out(row, head)
            case _:
                return self._left(row, head)

    def _changed(self, row: FolderFile, text: str) -> Line | None:
        spec, head = row.spec, row.spec.head
        assert head is not None
        if spec.review_rules.approvals or _open(row.patch) or _widens(spec, text):
            return self._to_patch(row, text, head, conflict=False)
        saved = save_version(
            self.folder.person, spec, text, head.number, self._message("From"), typed=False,
            origin=self._origin(row.path),
        )  # fmt: skip
        if isinstance(saved, Stale):  # somebody saved meanwhile
            return self._to_patch(row, text, saved.head, conflict=True)
        self._same(row, digest(text), saved)
        return Line(row.path, "changed", f"Saved as version {saved.number}.", spec.slug)

    def _to_patch(self, row: FolderFile, text: str, head: SpecVersion, *, conflict: bool) -> Line | None:
        """The text as a patch: a new one, or the next revision of the one that is open. No patch is needed
        where the file is again what both had: then the spec alone has changed."""
        row.there, row.seen = digest(text), head
        if _open(row.patch):
            assert row.patch is not None
            latest = row.patch.latest
            if latest.base.content_hash == row.there:
                reviews.close(self.folder.person, row.patch, latest.number)
                row.patch = None
                row.save(update_fields=["there", "seen", "patch"])
                return Line(
                    row.path, "left", "The file was changed back: its patch is closed.", row.spec.slug
                )
            if latest.content_hash != row.there:
                why = self._message("From")
                person = self.folder.person
                reviews.revise(person, row.patch, latest.number, text, why, self._origin(row.path))
            row.save(update_fields=["there", "seen"])
            made = row.patch
        elif row.there == _hash(row.base):
            row.save(update_fields=["there", "seen"])
            return self._goes_out(row, head)
        else:
            made = self._propose(row, text, row.base or head)
        if conflict:
            words = f"File and spec both changed. Patch {made.number} has the file's text: merge it there."
            return Line(row.path, "conflict", words, row.spec.slug)
        why = "is protected" if row.spec.review_rules.approvals else "may do more by it"
        words = f"Patch {made.number} waits for review: the spec {why}."
        return Line(row.path, "patch", words, row.spec.slug)

    def _propose(self, row: FolderFile, text: str, base: SpecVersion) -> Patch:
        subject = self.commit.subject or "A push"
        title = f"{self.folder.source.name}: {subject}"
        rationale = (
            f"The file {row.path} at commit {self.commit.digest} on {self.folder.short_branch}, "
            f"by {self.commit.author or 'nobody'}."
        )
        made = reviews.propose(
            self.folder.person, row.spec, text, base.number, title, rationale, origin=self._origin(row.path)
        )
        row.patch = made
        row.save(update_fields=["there", "seen", "patch"])
        return made

    def _goes_out(self, row: FolderFile, head: SpecVersion) -> Line | None:
        if _open(row.patch):
            assert row.patch is not None
            words = f"Version {head.number} waits: patch {row.patch.number} has the file's text."
            return Line(row.path, "waits", words, row.spec.slug)
        if _strange(row):
            return self._left(row, head)
        if self.folder.out == Folder.Out.NONE:
            words = f"Version {head.number} is not in the repository, as nothing goes out."
            return Line(row.path, "left", words, row.spec.slug)
        if self.folder.out == Folder.Out.PULL and row.sent == head.content_hash:
            return self._left(row, head)
        self.give.append(row)
        return None

    def _left(self, row: FolderFile, head: SpecVersion) -> Line:
        if _open(row.patch):
            assert row.patch is not None
            return Line(row.path, "patch", f"Patch {row.patch.number} waits for review.", row.spec.slug)
        if row.sent == head.content_hash:
            words = f"Version {head.number} waits in a pull request."
            return Line(row.path, "waits", words, row.spec.slug, row.pull_url)
        words = "File and spec differ. The next version or push brings them together."
        if _strange(row):
            words = (
                "The spec was there before the file and never had its text: no version goes out. Merge a "
                "patch of the file; or remove the file, and put the spec into the folder."
            )
        return Line(row.path, "left", words, row.spec.slug)

    def _absent(self, row: FolderFile) -> Line | None:
        """A file that is not there."""
        with transaction.atomic():
            line = self._gone(row)
            self.hold.confirm()
            return line

    def _gone(self, row: FolderFile) -> Line | None:
        spec = row.spec
        head = spec.head
        assert head is not None
        match act(None, row.there, _hash(row.base), _hash(row.seen), head.content_hash):
            case Act.GONE if row.base is None:
                row.delete()
                words = (
                    "The file was removed. The spec never had its text, and is not in the folder any more."
                )
                return Line(row.path, "removed", words, spec.slug)
            case Act.GONE:
                row.there, row.seen = "", head
                row.save(update_fields=["there", "seen"])
                words = "The file was removed. The spec stays; archive it if nobody needs it."
                return Line(row.path, "removed", words, spec.slug)
            case Act.GIVE if spec.archived_at is None:
                return self._goes_out(row, head)
            case _:
                return None

    def _same(self, row: FolderFile, now: str, head: SpecVersion) -> None:
        if (row.there, row.base_id, row.seen_id) != (now, head.pk, head.pk) or row.patch_id or row.sent:
            row.there, row.base, row.seen, row.sent, row.patch = now, head, head, "", None
            row.save(update_fields=["there", "base", "seen", "sent", "patch"])

    def _keep(
        self, path: str, spec: Spec, there: str, base: SpecVersion | None, seen: SpecVersion | None
    ) -> FolderFile:
        return FolderFile.objects.create(
            folder=self.folder, path=path, spec=spec, there=there, base=base, seen=seen
        )

    def _check(self, files: TeamFiles, text: str) -> None:
        """Raises: _Invalid."""
        wrong = [one for one in findings(files.whole(text), law_of(self.team)) if one.severity == "error"]
        if wrong:
            more = f" ({len(wrong)} errors)" if len(wrong) > 1 else ""
            place = f"{wrong[0].file} line" if wrong[0].file else "line"
            raise _Invalid(
                f"Not saved: {place} {wrong[0].line}: {wrong[0].code}: {wrong[0].message}{more}"[:300]
            )

    def _message(self, word: str) -> str:
        commit = self.commit
        return f"{word} {self.folder.source.name} {commit.digest[:12]} by {commit.author}: {commit.subject}"

    def _origin(self, path: str) -> dict[str, Any]:
        whole = f"{self.folder.path}/{path}" if self.folder.path else path
        return {
            "source": self.folder.source.name, "path": whole, "ref": self.folder.branch,
            "commit": self.commit.digest, "author": self.commit.author,
        }  # fmt: skip


def renamed(gone: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pairs of an old and a new name, the most alike first; each name in one pair at most."""
    if len(gone) * len(new) > MOST_PAIRS:
        gone = {old: text for old, text in gone.items() if text in new.values()}
    pairs = [(_alike(was, now), old, path) for old, was in gone.items() for path, now in new.items()]
    found: dict[str, str] = {}
    for share, old, path in sorted(pairs, key=lambda one: (-one[0], one[1], one[2])):
        if share >= ALIKE and old not in found and path not in found.values():
            found[old] = path
    return list(found.items())


def _alike(was: str, now: str) -> float:
    """The share of lines that two texts have in common, in order."""
    if was == now:
        return 1.0
    matcher = SequenceMatcher(None, was.splitlines(), now.splitlines(), autojunk=False)
    return 0.0 if matcher.quick_ratio() < ALIKE else min(matcher.ratio(), 0.999)


def _name(path: str) -> str:
    """What a spec is called that a file makes."""
    return path.removesuffix(ENDING).replace("/", "-")


def _text(row: FolderFile) -> str:
    """The text that the file of a row had last, as far as a version has it."""
    versions = SpecVersion.objects.filter(spec=row.spec, content_hash=row.there)
    text = versions.values_list("text", flat=True).first()
    if text is None and row.patch is not None:
        text = row.patch.latest.text
    return str(text or "")


def _hash(version: SpecVersion | None) -> str:
    return version.content_hash if version is not None else ""


def _open(patch: Patch | None) -> bool:
    return patch is not None and patch.state == Patch.State.OPEN


def _widens(spec: Spec, text: str) -> bool:
    """Whether the rule of what widens makes a patch of it: who pushed it is not asked here."""
    return widening.is_asked(spec) and bool(widening.gained(spec, text))


def _strange(row: FolderFile) -> bool:
    """Whether a file has the name of a spec that nobody put into the folder and that never had its text."""
    merged = row.patch is not None and row.patch.state == Patch.State.MERGED
    return bool(row.there) and row.base is None and not merged
