"""Pull requests by the API of GitHub and of GitLab (merge requests there).

Takes a source, a branch that is pushed, and the branch that it is to be merged into; gives the address of the
pull request, the one that is open already where there is one: asking again does nothing, or gives that one
the title and text of now. The address of the
API is judged as that of the repository is (SPAK_WEB_SOURCE_REACH). The token is sealed with the source and is
in no record, log or message; of what the API answers only its own message is shown, without control
characters.
Source: https://docs.github.com/en/rest/pulls/pulls, https://docs.gitlab.com/api/merge_requests/
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings

from spak.errors import RunError
from spak.policy import urls
from spakweb.ground import outgoing
from spakweb.ground.errors import Refused
from spakweb.ground.text import one_line
from spakweb.store.sources import addresses, credentials
from spakweb.store.sources.addresses import Address
from spakweb.store.sources.failures import answered
from spakweb.store.sources.models import Source

GITHUB, GITLAB = "github", "gitlab"
KINDS = (GITHUB, GITLAB)
NAMES = {GITHUB: "GitHub", GITLAB: "GitLab"}
MOST_BYTES, TIMEOUT_S = 1 << 20, 20.0
LONGEST = 500
"""Characters of an address of a pull request."""
EXAMPLE = "https://git.example.org/api/v4"
_GITHUB_COM = "github.com"


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request as it is asked for. `head` and `base` are branches without `refs/heads/`."""

    head: str
    base: str
    title: str
    text: str


def api_of(forge: str, address: Address, given: str) -> str:
    """Where the API of a source is: what an admin gave, or empty for the usual place.

    Raises: Refused `git.forge`.
    """
    if not forge:
        if given:
            raise _bad("An address of an API goes with GitHub or GitLab.", "Choose which of them it is.")
        return ""
    if forge not in KINDS:
        raise _bad("Pull requests are opened at github or gitlab.", "Choose one of them, or none.")
    if address.kind == "folder":
        raise _bad("A repository on the disk has no API.", "Leave pull requests out.")
    project = _project(address)
    if forge == GITHUB and project.count("/") != 1:
        raise _bad("A repository of GitHub is OWNER/NAME.", "Is the address right?")
    if not given:
        return ""
    parsed = urls.parse(given)
    inside = set(settings.SOURCE_REACH) - {"public"}
    if isinstance(parsed, urls.Trouble) or parsed.query or parsed.fragment:
        raise _bad("This is not an address of an API.", EXAMPLE)
    if parsed.scheme != "https" and not (parsed.scheme == "http" and inside):
        raise _bad("An API is reached over https.", EXAMPLE)
    return given.rstrip("/")


def base_of(ref: str) -> str:
    """The branch that a pull request is for, of the ref that the run began from.

    Raises: Refused `git.pull_base`.
    """
    head = ref.removeprefix("refs/heads/")
    if head == ref and ref.startswith("refs/"):
        why = "The run began from a tag, and a pull request is for a branch."
        raise Refused("git.pull_base", why, "Push the branch alone.", 409)
    return head


def open_pull(source: Source, pull: Pull, *, follow: bool = False) -> str:
    """The address of the pull request, opened if there is none; with `follow` an open one gets this title and
    text.

    Raises: RunError `git.pull_refused`, `git.credentials`, `git.reach`, `git.unreachable`, `git.sealed`.
    """
    address = addresses.read(source.url)
    root = source.api_url or _usual(source.forge, address)
    project = _project(address)
    token = credentials.unseal(source.api_sealed or (source.sealed if address.kind == "https" else ""))
    if source.forge == GITHUB:
        owner = project.partition("/")[0]
        place, found_at, key, change = f"{root}/repos/{project}/pulls", "html_url", "number", "PATCH"
        asked = {"head": f"{owner}:{pull.head}", "base": pull.base, "state": "open"}
        given = {"title": pull.title, "head": pull.head, "base": pull.base, "body": pull.text}
        headers = {
            "accept": "application/vnd.github+json",
            "x-github-api-version": "2022-11-28",
            **({"authorization": f"Bearer {token}"} if token else {}),
        }
    else:
        headers = {"private-token": token} if token else {}
        number = _number(root, project, headers)
        place, found_at = f"{root}/projects/{number}/merge_requests", "web_url"
        key, change = "iid", "PUT"
        asked = {"source_branch": pull.head, "target_branch": pull.base, "state": "opened"}
        given = {
            "source_branch": pull.head,
            "target_branch": pull.base,
            "title": pull.title,
            "description": pull.text,
        }
    known = _answer(f"{place}?{urlencode(asked)}", headers, "")
    sends = {**headers, "content-type": "application/json"}
    if isinstance(known, list) and known and (there := _address(known[0], found_at)):
        words = {name: given[name] for name in ("title", "body", "description") if name in given}
        if follow and any(known[0].get(name) != value for name, value in words.items()):
            number = known[0].get(key)
            if not isinstance(number, int):
                raise _refused("its answer has no number of the pull request")
            _answer(f"{place}/{number}", sends, json.dumps(words), change)
        return there
    made = _answer(place, sends, json.dumps(given))
    there = _address(made, found_at)
    if not there:
        raise _refused("its answer has no address of a pull request")
    return there


def _number(root: str, project: str, headers: Mapping[str, str]) -> int:
    """GitLab's number of a project, by its path: an address with a path in it would need an escaped slash,
    which is taken nowhere here."""
    asked = {"search": project.rpartition("/")[2], "membership": "true", "simple": "true", "per_page": 100}
    found = _answer(f"{root}/projects?{urlencode(asked)}", headers, "")
    for one in found if isinstance(found, list) else ():
        if isinstance(one, dict) and str(one.get("path_with_namespace")).lower() == project.lower():
            number = one.get("id")
            if isinstance(number, int):
                return number
    raise _refused(f"the token is not a member of a project {project}")


def _answer(url: str, headers: Mapping[str, str], body: str, method: str = "") -> Any:
    """What the API answers, as JSON."""
    done = outgoing.request(
        url, headers, body, reach=settings.SOURCE_REACH, resolve=addresses.look_up,
        method=method or ("POST" if body else "GET"), most_bytes=MOST_BYTES, timeout_s=TIMEOUT_S,
    )  # fmt: skip
    if done.code == "http_request.reach":
        raise RunError("git.reach", done.why, "the operator permits it with SPAK_WEB_SOURCE_REACH")
    if done.code in ("http_request.url", "http_request.header"):
        raise _refused(done.why)
    if done.status == 0:
        raise RunError("git.unreachable", "the API of the forge cannot be reached", "try again later")
    if done.status == 429 or done.status >= 500:
        raise answered(done.status, "the API of the forge")
    if done.status in (401, 403):
        raise RunError(
            "git.credentials", f"the API answered {done.status}: {_message(done.body)}",
            "an admin of the team gives the source a token that may open pull requests",
        )  # fmt: skip
    if not 200 <= done.status < 300:
        raise _refused(f"the API answered {done.status}: {_message(done.body)}")
    try:
        return json.loads(done.body)
    except (ValueError, RecursionError) as error:
        raise _refused("the API's answer is not JSON") from error


def _message(body: bytes) -> str:
    """What an API says of an error, in a line."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return "it said nothing that can be read"
    said = found.get("message") or found.get("error") if isinstance(found, dict) else ""
    more = found.get("errors") if isinstance(found, dict) else None
    if isinstance(more, list):
        said = f"{said}: " + ", ".join(
            str(one.get("message") or one.get("code") if isinstance(one, dict) else one) for one in more[:3]
        )
    return one_line(str(said), 150) or "it said nothing"


def _address(found: Any, name: str) -> str:
    given = found.get(name) if isinstance(found, dict) else None
    if not isinstance(given, str) or len(given) > LONGEST:
        return ""
    parsed = urls.parse(given)
    return "" if isinstance(parsed, urls.Trouble) or parsed.scheme not in ("https", "http") else given


def _project(address: Address) -> str:
    """OWNER/NAME, or GROUP/SUBGROUP/NAME."""
    path = address.url.partition("://")[2].partition("/")[2]
    return path.removesuffix("/").removesuffix(".git")


def _usual(forge: str, address: Address) -> str:
    if forge == GITHUB:
        at_home = address.host == _GITHUB_COM
        return f"https://api.{_GITHUB_COM}" if at_home else f"https://{address.host}/api/v3"
    return f"https://{address.host}/api/v4"


def _refused(why: str) -> RunError:
    return RunError("git.pull_refused", f"no pull request was opened or changed: {why}", "do it by hand")


def _bad(message: str, hint: str) -> Refused:
    return Refused("git.forge", message, hint, 422)
