"""What an id token says, once it is known to be the issuer's.

`issuer_of` reads whose it says it is, unchecked; `verified` gives its claims after signature and times were
checked; `Job.of` reads who asks by the names that GitHub or GitLab give it. Algorithms are asymmetric ones
alone, and the key is the issuer's by its id: what a token says of its own key counts for nothing. Source:
RFC 7519, RFC 8725; the claims of GitHub Actions' and GitLab CI's id tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import jwt

from spakweb.ground.errors import Refused
from spakweb.work.oidc import keys

GITHUB = "github"
"""One of models.Kind; the other is GitLab."""
FAMILIES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""The kind of key that each family of algorithms needs."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
PUBLIC = {"kty", "n", "e", "crv", "x", "y"}
"""The members of a key that a check needs."""
SHORTEST_RSA = 2048
LONGEST_LIFE_S = 31 * 86_400
LEEWAY_S = 60
"""How far the issuer's clock may be from ours."""
LONGEST_TOKEN, LONGEST_CLAIM = 16 << 10, 300
NEEDED = ["iss", "aud", "sub", "iat", "exp"]
REFS = {"branch": "refs/heads/", "tag": "refs/tags/"}


@dataclass(frozen=True, slots=True)
class Job:
    """Who asks: a job of a CI."""

    repository: str
    repository_id: str
    ref: str
    """In full, such as refs/heads/main."""
    environment: str
    """Empty where the job has none."""
    run: str

    @classmethod
    def of(cls, kind: str, claims: Mapping[str, Any]) -> Self:
        """From the claims. What is not there, or no text, is empty and fits no rule."""
        if kind == GITHUB:
            names = ("repository", "repository_id", "ref", "environment", "run_id")
            return cls(*(_text(claims, name) for name in names))
        names = ("project_path", "project_id", "ref", "environment", "pipeline_id")
        path, number, ref, environment, run = (_text(claims, name) for name in names)
        before = REFS.get(_text(claims, "ref_type"), "")
        return cls(path, number, f"{before}{ref}" if before and ref else "", environment, run)


def issuer_of(token: str) -> str:
    """Whose it says it is; nothing is checked yet. Raises: Refused `web.oidc_token`."""
    if not 0 < len(token) <= LONGEST_TOKEN:
        _refuse("It is not an id token.")
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise _refused("It is not an id token.") from error
    return _text(claims, "iss")


def verified(token: str, issuer: str) -> dict[str, Any]:
    """Its claims. Raises: Refused `web.oidc_token`, `web.oidc_issuer`."""
    try:
        header = jwt.get_unverified_header(token)
        name, kid = header.get("alg"), header.get("kid")
        if name not in ALGORITHMS:
            _refuse("Its algorithm is none of those that are taken.")
        if not isinstance(kid, str) or not kid:
            _refuse("It names no key.")
        key = keys.key_of(issuer, kid)
        if key.get("kty") != FAMILIES[name[:2]] or key.get("alg", name) != name:
            _refuse("Its algorithm is not that of the key.")
        public = jwt.PyJWK({part: key[part] for part in PUBLIC & key.keys()}, algorithm=name).key
        if getattr(public, "key_size", SHORTEST_RSA) < SHORTEST_RSA and key["kty"] == "RSA":
            _refuse("The key is too short.")
        found = jwt.decode(
            token, public, algorithms=[name], issuer=issuer, leeway=LEEWAY_S,
            options={"require": NEEDED, "verify_aud": False},
        )  # fmt: skip
        if not all(isinstance(found[when], int | float) for when in ("iat", "exp")):
            _refuse("Its times are no numbers.")
        if int(found["exp"]) - int(found["iat"]) > LONGEST_LIFE_S:
            _refuse("It works for too long.")
    except jwt.ExpiredSignatureError as error:
        raise _refused("It has expired.") from error
    except jwt.ImmatureSignatureError as error:
        raise _refused("It is not valid yet.") from error
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise _refused("It is not signed by its issuer, or a claim is missing or odd.") from error
    return dict(found)


def audience_of(claims: Mapping[str, Any]) -> str:
    """Whom it is for, where that is one alone; one for several could have been passed on by another."""
    return _text(claims, "aud")


def token_id(claims: Mapping[str, Any]) -> str:
    """Its own id; empty where it has none."""
    return _text(claims, "jti")


def _text(claims: Mapping[str, Any], name: str) -> str:
    """The claim; empty for what is no text, and for what no database takes: half a sign, a zero byte."""
    found = claims.get(name, "")
    return found if isinstance(found, str) and len(found) <= LONGEST_CLAIM and found.isprintable() else ""


def _refused(why: str) -> Refused:
    hint = "Ask the CI for a new id token, and send it at once and unchanged."
    return Refused("web.oidc_token", f"The id token is not taken. {why}", hint, 401)


def _refuse(why: str) -> NoReturn:
    raise _refused(why)
