"""Every write that people make to sources: an admin's acts, each an event of the team.

`add` and `rotate` take credentials and give none back, but for the public half of a deploy key. `begin` says
which source and ref a new run begins from; a worker fetches it (freeze.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction

from spak.secrets.redact import MIN_SECRET
from spakweb.ground import access, clock
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.sources import addresses, credentials, refs
from spakweb.store.sources.addresses import Address
from spakweb.store.sources.models import RunSource, Source
from spakweb.store.specs.models import Spec
from spakweb.work.sources import forges

MOST = 50
"""Sources of one team."""
USER = "x-access-token"
"""The name that goes with a token where none is given; GitHub and GitLab take it."""
LONGEST_TOKEN, LONGEST_USER, HOST_KEYS = 4000, 100, 8
KEY_KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")


def add(
    user: Any,
    team: Team,
    name: str,
    url: str,
    allowed: Sequence[str],
    *,
    token: str = "",
    login: str = "",
    host_keys: str = "",
    submodules: bool = False,
    lfs: bool = False,
    forge: str = "",
    api_url: str = "",
    api_token: str = "",
) -> Source:
    """A source. One of ssh gets a deploy key, whose public half `public_key` has. With `forge` pull requests
    may be opened, by the API at its usual place or at `api_url`, with the token of git or one of its own.

    Raises: Refused `git.name`, `git.url`, `git.refs`, `git.token`, `git.host_keys`, `git.forge`, `git.taken`,
    `git.many`.
    """
    access.require(user, "source.manage", team)
    called = _name(name)
    address = addresses.read(url)
    made = Source(
        team=team, name=called, url=address.url, refs="\n".join(refs.patterns(allowed)),
        host_keys=_host_keys(address, host_keys), submodules=submodules, lfs=lfs, made_by=user,
        forge=forge, api_url=forges.api_of(forge, address, api_url.strip()),
    )  # fmt: skip
    _prove(made, address, token, login)
    _prove_api(made, api_token)
    try:
        with transaction.atomic():
            list(Team.objects.select_for_update(no_key=True).filter(pk=team.pk).values_list("pk"))
            if Source.objects.filter(team=team).count() >= MOST:
                raise Refused("git.many", f"A team has at most {MOST} sources.", "Remove one.", 409)
            made.save(force_insert=True)
            about = {"forge": forge} if forge else {}
            record(user, "source.made", called, team, url=address.url, refs=made.patterns, **about)
    except IntegrityError as error:
        raise Refused("git.taken", f"The team has a source {called}.", "Choose another name.", 409) from error
    return made


def rotate(user: Any, source: Source, token: str = "", login: str = "", api_token: str = "") -> Source:
    """Other credentials: a token of https, or a new deploy key of ssh; with `api_token` the API's alone.

    Raises: Refused `git.token`, `git.forge`.
    """
    access.require(user, "source.manage", source)
    if api_token:
        _prove_api(source, api_token)
    else:
        _prove(source, addresses.read(source.url), token, login or source.user)
    source.rotated_at = clock.now()
    with transaction.atomic():
        source.save(update_fields=["user", "sealed", "public_key", "api_sealed", "rotated_at"])
        record(user, "source.rotated", source.name, source.team)
    return source


def remove(user: Any, source: Source) -> None:
    """Remove it with its credentials. Runs keep what they were given; those that wait for it fail."""
    access.require(user, "source.manage", source)
    with transaction.atomic():
        record(user, "source.removed", source.name, source.team, url=source.url)
        source.delete()


def begin(user: Any, spec: Spec, name: str, ref: str = "", commit: str = "") -> RunSource:
    """What a run of the spec is to begin from, not saved yet. Without a ref the source's usual one.

    Raises: Refused `git.source_unknown`, `git.ref`, `git.ref_not_allowed`.
    """
    source = find(user, spec, name)
    wanted = ref or refs.usual(source.patterns)
    refs.allowed(wanted, source.patterns)
    if commit and not refs.COMMIT.match(commit):
        raise Refused("git.ref", "A commit is named by all its 40 hexadecimal digits.", "git rev-parse", 422)
    return RunSource(source=source, name=source.name, url=source.url, ref=wanted, wanted=commit)


def find(user: Any, spec: Spec, name: str) -> Source:
    """A source that runs of the spec may begin from. Raises: Refused `git.source_unknown`."""
    access.require(user, "run.start", spec)
    source = Source.objects.filter(team=spec.team, name=name).first() if name.isprintable() else None
    if source is None:
        hint = "The page Sources of the team lists them."
        raise Refused("git.source_unknown", f"The team has no source {name[:40]!r}.", hint, 422)
    return source


def _name(given: str) -> str:
    found = given.strip()
    good = found.replace("-", "a")
    if (
        not (good.isascii() and good.isalnum() and good == good.lower() and len(found) <= 40)
        or found[0] == "-"
    ):
        raise Refused(
            "git.name", "A source needs a name of small letters, digits and dashes.", "web-shop", 422
        )
    return found


def _prove(source: Source, address: Address, token: str, login: str) -> None:
    """Put the credentials in, sealed."""
    if address.kind != "https" and token:
        raise Refused(
            "git.token", "A token goes with an https address.", "For ssh a deploy key is made.", 422
        )
    if address.kind == "ssh":
        private, source.public_key = credentials.deploy_key(f"spak-{source.team.slug}-{source.name}")
        source.user, source.sealed = "", credentials.seal(private)
        return
    _require_token(token)
    named = (login or USER) if token else ""
    if not (named.isascii() and named.isprintable() and ":" not in named and len(named) <= LONGEST_USER):
        raise Refused("git.token", "This is not a name to go with a token.", "x-access-token, oauth2", 422)
    source.user, source.sealed = named, credentials.seal(token)


def _prove_api(source: Source, token: str) -> None:
    """The same for the API's token. Raises: Refused `git.token`, `git.forge`."""
    if token and not source.forge:
        raise Refused("git.forge", "A token of an API goes with GitHub or GitLab.", "Leave it out.", 422)
    _require_token(token)
    source.api_sealed = credentials.seal(token)


def _require_token(token: str) -> None:
    plain = token.isascii() and token.isprintable() and " " not in token
    if token and not (plain and MIN_SECRET <= len(token) <= LONGEST_TOKEN):
        hint = f"At least {MIN_SECRET} letters, digits and signs, without blanks."
        raise Refused("git.token", "This is not a token.", hint, 422)


def _host_keys(address: Address, given: str) -> str:
    """The host's public keys, a line each, with or without its name before them as ssh-keyscan writes it."""
    if address.kind != "ssh":
        return ""
    found = []
    for line in given.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        at = next((number for number, word in enumerate(words[:2]) if word in KEY_KINDS), None)
        if (
            at is None
            or len(words) < at + 2
            or not words[at + 1].startswith("AAAA")
            or not words[at + 1].isascii()
        ):
            raise _no_host_key("A line of the host's keys is none.")
        found.append(f"{words[at]} {words[at + 1][:4000]}")
    if not 0 < len(found) <= HOST_KEYS:
        raise _no_host_key("A source of ssh needs the public key of its host.")
    return "\n".join(found)


def _no_host_key(message: str) -> Refused:
    hint = "ssh-keyscan HOST prints it; compare it with what the host publishes."
    return Refused("git.host_keys", message, hint, 422)
