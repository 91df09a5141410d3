"""What is found in a command line: deeds, and paths with the place that each leads to."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from spak.commandline import lists, places
from spak.commandline.words import Arg
from spak.commandline.world import TOO_MANY, Seen
from spak.commandline.world import Eyes as World
from spak.shell import Command

SAFE_DEVICES = lists.names("findings", "devices")
PUBLIC_FILES = lists.names("findings", "public_files")


_KEEPS_CREDENTIALS = re.compile(r"config\b.*|credentials.*")
"""Files of git in which addresses with passwords and headers with tokens stand."""


_USUAL_SECRETS = lists.ordered("findings", "usual_secrets")
"""Names that a pattern is tried on, for those that only the history holds."""


def _place(seen: Seen, how: str, asked: str) -> str:
    """The place of a path. Settings of git that may hold credentials are secret to read, and so is what is
    not there yet under a name that promises a secret."""
    place = places.place(seen, how, asked)
    name = posixpath.basename(seen.path)
    unseen = seen.kind == "missing" and places.telling(name) and places.may_hold_at(seen.path)
    secret = unseen if place == "inside" else place == "git" and _KEEPS_CREDENTIALS.match(name)
    return "secret" if secret and how == "reads" else place


_MAKES = frozenset({"writes", "redirects", "moves"})
MAX_MEMBERS = 20
"""Members of an archive in places that are not permitted, each of which is named."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What the command of that index on the line does, and what it is about."""

    index: int
    kind: str
    about: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Use:
    """A path that a command uses, how, and the place that it leads to."""

    index: int
    how: str
    path: str
    place: str


@dataclass(slots=True)
class Reading:
    """What was found in a line. `trouble` is the code and message when it can not be read."""

    deeds: list[Deed] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    trouble: tuple[str, str] | None = None
    connections: list[tuple[str, str]] = field(default_factory=list)
    """Protocol and host of what reaches another machine, as far as a line names them."""


class Findings:
    """Where deeds and paths are noted while a line is read."""

    def __init__(self, world: World, reading: Reading, listed: Callable[[Sequence[Command]], None]) -> None:
        """`listed` reads the commands whose output is read as paths."""
        self.listed = listed
        self.world = world
        self.reading = reading
        self.index = 0
        self.folders = [""]
        self.brought: dict[str, int] = {}
        """Places to which the line brings links or secrets, which nobody sees there before it runs, each with
        the command that does."""
        self.used: list[tuple[int, str, bool]] = []
        """The paths that commands use, as seen from the workspace, and whether what is below one is used too:
        it is changed, searched or walked."""

    def deed(self, kind: str, about: str, why: str = "") -> None:
        """Note what the present command does."""
        self.reading.deeds.append(Deed(self.index, kind, about[:200], why))

    def connect(self, protocol: str, host: str) -> None:
        """Note a host that is reached."""
        self.reading.connections.append((protocol, host))

    def wholes(self, *paths: str) -> list[str]:
        """Paths as they are seen from the workspace, from each folder that the line may stand in."""
        return [posixpath.join(folder, path) for path in paths for folder in dict.fromkeys(self.folders)]

    def use(self, how: str, path: str) -> None:
        """A path is used, seen from the folder the line stands in."""
        if (path in SAFE_DEVICES and how != "runs") or (how == "reads" and path in PUBLIC_FILES):
            return
        for whole in self.wholes(path):
            self.used.append((self.index, whole, how != "reads"))
            self._note(how, whole)

    def _note(self, how: str, whole: str) -> None:
        seen = self.world.look(whole)
        done = {(use.how, use.place) for use in self.reading.uses}
        if how == "deletes_tree" and ("moves", "inside") in done:
            self.deed("deletes_widely", whole, "a folder to which the line may have moved files")
        stood = (self.world.look(folder).path for folder in self.folders if folder)
        if how == "moves" and any(f"{path}/".startswith(f"{seen.path}/") for path in stood):
            self.deed("not_understood", whole, "the folder that the line works in would be another")
        self.reading.uses.append(Use(self.index, how, seen.path, _place(seen, how, whole)))

    def outside(self, how: str, path: str) -> None:
        """A path that leads out of the workspace is used."""
        self.reading.uses.append(Use(self.index, how, path, "outside"))

    def brings(self, *names: str, at: Sequence[str] = ("", "/")) -> None:
        """Places to which this command brings links or secrets: the names themselves and what is below each.
        Of a link that `ln` makes what is below alone: to read it is to read its target, which was judged."""
        self.brought |= {self._lies(whole) + end: self.index for whole in self.wholes(*names) for end in at}

    def follows_own(self) -> None:
        """Notes the paths at, through or above a place to which a command before brought links or secrets."""
        for index, path, with_below in self.used if self.brought else ():
            before = {name for name, brought in self.brought.items() if brought < index}
            lies = self._lies(path) or self.world.look(path or ".").path
            ways = {f"{self._lies(path[: end.start()])}/" for end in re.finditer("/+", path.rstrip("/"))}
            below = [name for name in before if lies in ("", ".") or f"{name}/".startswith(f"{lies}/")]
            if before & {lies, *ways} or (with_below and below):
                self.deed("follows_own_link", path or ".", "a path to what the same line links or brings")

    def _lies(self, path: str) -> str:
        """Where a name lies, not where it leads; nothing for one that is no name."""
        folder, name = posixpath.split(path.rstrip("/"))
        if name in ("", ".", ".."):
            return ""
        return posixpath.normpath(posixpath.join(self.world.look(folder or ".").path, name))

    def path(self, how: str, found: Arg) -> None:
        """A word that names a path, or several."""
        if not found.texts and found.lists_paths:
            if how == "reads":
                self.listed(found.feed)
            kind = "reads" if how == "reads" else "unknown_word"
            self.deed(kind, found.written, "paths from a command's output")
        elif not found.texts:
            self.deed("unknown_word", found.written, "a path that is not known before the line runs")
        elif found.tilde:
            self.outside(how, found.written)
        for text in () if found.tilde else found.texts:
            self.use(how, text)
            if not found.glob:
                continue
            self._searches(before_glob(text))
            if above(text) != text:
                self.use(how, above(text))
            if how in ("deletes", "deletes_tree"):
                self.overwrites(text)
            for whole in self.wholes(text):
                for match in self.world.spread(whole):
                    self._note(how, match)

    def _searches(self, *folders: str) -> None:
        self.used += [(self.index, whole, True) for whole in self.wholes(*folders)]

    def expands(self, found: Arg) -> None:
        """A pattern that is no path for its program: a shell tells it the names that match, so that their
        folder is read where it lies outside. Names within the workspace are no secret."""
        if not found.texts:
            self.deed("unknown_word", found.written, "a pattern that is not known before the line runs")
        for text in found.texts:
            folder, slash, _ = above(text).rpartition("/")
            if slash:
                self.path("reads", Arg(text, (folder or "/",), True, found.tilde))

    def overwrites(self, *texts: str) -> None:
        """Note patterns whose files all lose what they hold, but for those that a build makes."""
        for text in texts:
            if re.search(r"[*?\[]", text) and not places.generated(posixpath.normpath(text)):
                self.deed("deletes_widely", text, "a pattern that may take more than files made by a build")

    def tree(self, found: Arg, links: bool, kept: Callable[[str], bool] = bool) -> None:
        """A folder that is read with all that is below it: no secret, and no link out where these are
        followed. `kept` says of a path whether it is read at all."""
        self.path("reads", found)
        for text in found.texts if not (found.glob or found.tilde) else ():
            if places.of_git(posixpath.basename(posixpath.normpath(text))):
                self.use("reads", posixpath.join(text, "config"))
        starts = [before_glob(text) if found.glob else text for text in found.texts if not found.tilde]
        self._searches(*starts)
        for folder in self.wholes(*starts):
            for path, kind in self.world.below(folder):
                if path == TOO_MANY:
                    self.deed("not_looked_at", folder, "a folder with more files than are looked at")
                elif (kept(path) or self.world.look(path).kind == "folder") and (links or kind != "link"):
                    self._odd_use("reads", path)

    def _odd_use(self, how: str, path: str) -> bool:
        """Note a path that nobody wrote down where it is not an ordinary one; gives whether it is noted."""
        seen = self.world.look(path)
        place = _place(seen, how, path)
        if place in ("inside", "generated", "root") or (how == "reads" and place in ("control", "git")):
            return False
        how = "walks" if how == "reads" and place == "secret" else how  # which a sandbox masks
        self.reading.uses.append(Use(self.index, how, seen.path, place))
        return True

    def unpacks(self, found: Arg, targets: Sequence[Arg]) -> None:
        """What an archive or a patch would write below the folders, as far as it is no ordinary place."""
        written = set(self._written())
        for text, folder in itertools.product(found.texts, dict.fromkeys(self.folders)):
            whole = posixpath.join(folder, text)
            unclear = (
                re.search(r"[*?\[]", text) or text in ("", "-") or self.world.look(whole).path in written
            )
            names = (TOO_MANY,) if unclear else self.world.members(whole)
            if not self.writes_members(names or (), targets, folder):
                self.deed("not_looked_at", text, "an archive whose members are not all looked at")
                return

    def writes_members(self, names: Sequence[str], targets: Sequence[Arg], folder: str = "") -> bool:
        """Note names in odd places that would be written below targets; False where there are too many."""
        odd, places = 0, [text for item in targets for text in item.texts]
        for name in names:
            if name == TOO_MANY or odd > MAX_MEMBERS:
                return False
            for place in places:
                odd += self._odd_use("writes", posixpath.join(folder, place, name.lstrip("/") or "."))
        return True

    def copies(self, sources: Sequence[Arg], target: Arg, named: bool, contents: bool) -> None:
        """Note odd places that copies of the sources come to: in a folder under their own names if `named`,
        else at its place; `contents` says that a slash at the end means what is in a folder (rsync)."""
        texts = [text for item in sources if not item.tilde for text in item.texts]
        for text, folder in itertools.product(texts, dict.fromkeys(self.folders)):
            start = posixpath.join(folder, text)
            made = [path for path in self._written() if fnmatchcase(path, posixpath.normpath(start))]
            for source in [*self.world.spread(start), *made] if re.search(r"[*?\[{]", text) else (start,):
                self._copied(source, folder, target, named, contents)

    def _copied(self, source: str, folder: str, target: Arg, named: bool, contents: bool) -> None:
        last = "" if contents and source.endswith("/") else posixpath.basename(source.rstrip("/"))
        last = "" if last in (".", "..") else last
        for to in target.texts:
            place = posixpath.join(folder, to)
            into = named and (to.endswith("/") or self.world.look(place).kind == "folder")
            to_name = posixpath.join(place, last) if into or (contents and last) else place
            head = posixpath.normpath(source) + "/"
            made = [path.removeprefix(head) for path in self._written() if path.startswith(head)]
            held = [self.world.spread(posixpath.join(source, pattern)) for pattern in ("*", ".[!.]*")]
            for name in (".", *made, *map(posixpath.basename, itertools.chain(*held))):
                self._odd_use("writes", posixpath.join(to_name, name))
            links = self._lies(source) not in ("", self.world.look(source).path)
            if made or links or self.world.below(source):
                brought = [self._lies(name) + end for name in (place, to_name) for end in ("", "/")]
                self.brought |= dict.fromkeys(brought, self.index)

    def _written(self) -> list[str]:
        """What the line made so far."""
        return [use.path for use in self.reading.uses if use.how in _MAKES]

    def pathspec(self, text: str) -> None:
        """A path as git takes it: with magic words in front, and a pattern that matches slashes too."""
        bare = re.sub(r":(\([^)]*\)|/)", "", text, count=1) if text.startswith(":") else text
        if bare.startswith(":") or (bare == text and not re.search(r"[*?\[]", text)):
            return
        bare = bare.casefold()
        below = (path for path, _ in self.world.below("."))
        for path in filter(places.secret, (*_USUAL_SECRETS, *below)):
            name = path.casefold()
            if fnmatchcase(name, bare) or f"{name}/".startswith(f"{bare.rstrip('/')}/"):
                self.reading.uses.append(Use(self.index, "reads", path, "secret"))
                return

    def plain_paths(self, rest: Sequence[Arg], how: str = "reads") -> None:
        """Every word that could be a path is held to be one."""
        for item in rest:
            if not (item.texts or item.lists_paths or item.mild):
                self.deed("unknown_word", item.written, "a word that is not known before the line runs")
            for text in item.texts:
                self.pathlike(item, text, how)

    def pathlike(self, item: Arg, text: str, how: str = "reads") -> None:
        """The part of a word that looks like a path, after a flag's name too."""
        if item.tilde or re.search(r"[=:,]~(/|\Z)", text):
            self.outside(how, text)
            return
        if re.match(r"(?i)(https?|ftp|file|git|ssh)(\+\w+)?://|(git|hg|svn)\+", text):
            self.deed("connects", text, "an address on a command line")
            return
        value = text
        if text.startswith("-"):
            how = "writes" if _NAMES_OUTPUT.match(text) else how
            after = re.match(r"[^=]*=(.*)|-[^-](?s:.)*?(\.\./.*|/.*|\.\.)\Z", text, re.DOTALL)
            value = (after[1] or after[2] or "") if after else ""
        for piece in re.split(r"[:,](?=[/~.])", value.lstrip("@")):
            if piece and (piece != "-"):
                self.path(how, Arg(item.written, (piece,), item.glob))


def before_glob(pattern: str) -> str:
    """The folder of a pattern, as far as it is written out."""
    return re.split(r"[*?\[]", pattern, maxsplit=1)[0].rpartition("/")[0] or "."


_NAMES_OUTPUT = re.compile(r"-[\w-]*?(out|log|report|junit|dump|save|write|dest|record|trace|prof)")
"""Options that programs name their output with."""
_TO_ABOVE = re.compile(r"\.(?:[*?]|\[[^/]*\]|\.)*\Z")
_NOT_ABOVE = re.compile(r"\.(\[![^\]/]*\.[^\]/]*\].*|(\.?\?){2,}.*)\Z")


def above(pattern: str) -> str:
    """The pattern with `..` for each part that some shell would take for it."""
    parts = pattern.split("/")
    for at, part in enumerate(parts):
        if re.search(r"[*?\[]", part) and _TO_ABOVE.match(part) and not _NOT_ABOVE.match(part):
            parts[at] = ".."
    return "/".join(parts)


_COMPILERS = lists.names("findings", "compilers")


def compiled_and_run(reading: Reading, run: set[str]) -> set[int]:
    """The compilers of the line whose output, made from files of the project alone, the line also runs."""
    found = {deed.index for deed in reading.deeds if deed.kind == "builds" and deed.about in _COMPILERS}
    of_input = {use.index for use in reading.uses if use.how == "runs" and use.path.endswith("-")}
    return found & {use.index for use in reading.uses if use.how == "writes" and use.path in run} - of_input
