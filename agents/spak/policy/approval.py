"""Approvals: a person's signed yes or no to one action of one run, once.

Takes the body of an approval proposal and what it has to fit (the approvers' keys of genesis, the action, the
permit that asked, the run, the step, the clock of the record); gives Approved or Rejected with a code. Pure:
Ed25519 signs and verifies the same on every machine, and nothing here asks for the time. `make` signs what
`verify` accepts; where the private key comes from is somebody else's matter. It decides nothing about the
action: whoever asked derives that with the facts of an Approved.

    {"of", "decision": "approve" | "deny", "signer", "expires": ms, "run", "signature"}
    {"of", "decision": "later"}

The signature is over the canonical bytes of `message`. It binds the action (its tool and its rendered
arguments), the permit that asks (`of`, which no other permit of any run shares, so that an answer counts
once), the run, the step and the expiry. The signer is bound by the key that verifies: ids of keys come from
the keys themselves (`key_id`). Source: seed 004 part two, section 10.2; DESIGN.md section 9.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spak import canon

VERSION = 1
"""Of the signed bytes; raise it when their members or their meaning change."""

APPROVE = "approve"
DENY = "deny"
LATER = "later"
"""Nobody has answered yet, and the proposer goes on without the action: a denial, which needs no signature.
The answer may come afterwards, and counts for the next proposal of the same action."""
APPROVER = "approver"
"""The role whose yes is a `signed_approval`."""
ADMIN = "admin"
"""The role whose yes is an `admin_override` too."""
ROLES = (APPROVER, ADMIN)

_MEMBERS = frozenset({"of", "decision", "signer", "expires", "run", "signature"})
_TEXTS = ("of", "decision", "signer", "run", "signature")
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Approved:
    """A signature that holds, and whose it is."""

    signer: str
    """The name of the key in genesis."""
    roles: tuple[str, ...]

    @property
    def overrides(self) -> bool:
        """Whether the signer is an admin, whose approval some laws ask for."""
        return ADMIN in self.roles


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why an answer approves nothing."""

    code: str
    message: str


def action_hash(tool: str, args: Any) -> str:
    """The name of an action: its tool and its arguments as they will be used."""
    return canon.content_hash([tool, args])


def key_id(public: str) -> str:
    """The id of a public key, from the key itself."""
    return canon.digest(public.encode())[:16]


def message(*, action: str, decision: str, expires: int, of: str, run: str, step: str) -> bytes:
    """The bytes that are signed. `step` is `Task/step`, `expires` Unix time in milliseconds."""
    return canon.dumps(
        {
            "action": action,
            "decision": decision,
            "expires": expires,
            "of": of,
            "run": run,
            "step": step,
            "v": VERSION,
        }
    )


def make(
    private: bytes, *, action: str, of: str, run: str, step: str, expires: int, decision: str = APPROVE
) -> dict[str, Any]:
    """The body of an approval, signed with a raw private key of 32 bytes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(private)
    text = message(action=action, decision=decision, expires=expires, of=of, run=run, step=step)
    return {
        "of": of,
        "decision": decision,
        "signer": key_id(encoded(key.public_key().public_bytes_raw())),
        "expires": expires,
        "run": run,
        "signature": encoded(key.sign(text)),
    }


def verify(
    body: Any,
    *,
    keys: Sequence[Mapping[str, Any]],
    action: str,
    of: str,
    run: str,
    step: str,
    at: int,
    earlier: Collection[str] = (),
) -> Approved | Rejected:
    """Whether this is a good yes to this action, now. Never raises, whatever the body or the keys are.

    `keys` are the approvers of genesis, `{"id", "name", "public", "roles"}`; `at` is the clock of the record
    that carries the approval; `earlier` are permits that asked about the same action before and were put off.
    Codes: policy.approval_malformed, _run, _key, _signature, _expired, _denied, _later.
    """
    if body == {"of": of, "decision": LATER}:
        return Rejected("policy.approval_later", "a person was asked, and has not answered yet")
    wrong = _misshapen(body)
    if wrong:
        return Rejected("policy.approval_malformed", wrong)
    if body["run"] != run or body["of"] not in (of, *earlier):
        return Rejected("policy.approval_run", "it answers another run or another question")
    key = _approver(keys, body["signer"])
    if key is None:
        return Rejected("policy.approval_key", "its signer is no approver of this run")
    signed = message(
        action=action,
        decision=body["decision"],
        expires=body["expires"],
        of=body["of"],
        run=run,
        step=step,
    )
    if not is_signed(key["public"], body["signature"], signed):
        return Rejected("policy.approval_signature", "its signature does not fit this action and this key")
    if at >= body["expires"]:
        return Rejected("policy.approval_expired", "it had expired when it came")
    if body["decision"] == DENY:
        return Rejected("policy.approval_denied", f"{key['name']} denied the action")
    return Approved(key["name"], tuple(role for role in ROLES if role in key["roles"]))


def publics(keys: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The public keys of those who may approve."""
    return frozenset(str(key["public"]) for key in keys if any(role in key["roles"] for role in ROLES))


def encoded(data: bytes) -> str:
    """Base64url without padding, as keys and signatures are written."""
    return b2a_base64(data, newline=False).decode().replace("+", "-").replace("/", "_").rstrip("=")


def decoded(text: str, size: int) -> bytes | None:
    """The bytes, or None when the text is not the one way of writing `size` bytes."""
    if not text.isascii() or len(text) > 2 * size:
        return None
    try:
        data = a2b_base64(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return data if len(data) == size and encoded(data) == text else None


def _misshapen(body: Any) -> str:
    """What is wrong with the shape of a body, or nothing. A member that nobody signed is wrong too."""
    if not isinstance(body, Mapping) or set(body) != _MEMBERS:
        return f"its members are not {', '.join(sorted(_MEMBERS))}"
    for name in _TEXTS:
        if type(body[name]) is not str or not 0 < len(body[name]) <= _LONGEST:
            return f"{name} is not a short text"
    if body["decision"] not in (APPROVE, DENY):
        return f"decision is neither {APPROVE} nor {DENY}"
    if type(body["expires"]) is not int or not 0 < body["expires"] <= canon.MAX_INT:
        return "expires is not a time in milliseconds"
    return ""


def _approver(keys: Sequence[Mapping[str, Any]], signer: str) -> Mapping[str, Any] | None:
    """The key of that id, if there is one and it may approve; two of one id are none."""
    found = [key for key in keys if isinstance(key, Mapping) and key.get("id") == signer]
    if len(found) != 1:
        return None
    key = found[0]
    roles, name, public = key.get("roles"), key.get("name"), key.get("public")
    if not isinstance(roles, (list, tuple)) or not any(role in roles for role in ROLES):
        return None
    if not isinstance(name, str) or not name or not isinstance(public, str) or not public.isascii():
        return None
    return key if key_id(public) == signer else None


def is_signed(public: str, signature: str, text: bytes) -> bool:
    """Whether it is the key's signature over the text; both in base64url, damaged ones are none."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw, sealed = decoded(public, 32), decoded(signature, 64)
    if raw is None or sealed is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(sealed, text)
    except (InvalidSignature, ValueError):
        return False
    return True
