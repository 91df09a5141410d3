"""One strict reading of a URL: what it names, or why no two readers need agree on it.

Takes the text; gives a Url, or a refusal as a Trouble. Accepts only what every reader takes the same way:
`https://host[:443]/path?query#fragment` in plain ASCII, host in lower-case labels; a bare host (an address in
its one plain form, a name of one label) where the caller asks for these. It resolves nothing; which hosts may
be reached is the policy's affair. `payload` says what in a path, query or fragment looks like data
that is carried out; it is asked for allowed hosts too. Source: notes on the gates (entropy alone decides
nothing; the budget of one query does).
"""

from __future__ import annotations

import itertools
import re
from base64 import b32decode, urlsafe_b64decode
from binascii import Error as Base64Error
from binascii import unhexlify
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import unquote_plus

MAX_URL = 2048
MAX_QUERY = 160
"""Characters of a query: a search or a page, not a file."""

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)"
    r"(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?\Z"
)
_LEGAL = re.compile(r"[A-Za-z0-9._~:/?#@!$&'()*+,;=%\[\]-]*\Z")
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}\Z")
_LABEL = re.compile(r"(?!(?:\d+|0x[0-9a-f]*)\Z)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
"""A name of one label that no reader takes for a number, and so for an address."""
_ESCAPE = re.compile(r"%(..?)?", re.DOTALL)
_HEX = re.compile(r"(?:[0-9a-f]{2})+\Z", re.IGNORECASE)
_SECRET = re.compile(
    r"AKIA[0-9A-Z]{12}|ASIA[0-9A-Z]{12}|gh[pousr]_\w{8}|github_pat_|xox[abprs]-|sk-[A-Za-z0-9_-]{16}|eyJ[A-Za-z0-9_-]{6,}|"
    r"-----BEGIN|PRIVATE.KEY|glpat-|AIza[0-9A-Za-z_-]{20}|npm_[A-Za-z0-9]{16}|pypi-AgE|"
    r"root:[x*]:0:|/bin/(ba|z)?sh\b|[a-z]+://[^/\s:@]+:[^/\s:@]+@|"
    r"(?i:passw(or)?d|passwd|secret|api_?key|access_?key|auth_?token|database_url|credential|aws_|hunter2)"
    r"\s*[=:]",
)
_TRANSLATED = tuple(map(IPv6Network, ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")))
"""Networks of IPv6 whose last 32 bits are an address of IPv4: NAT64, SIIT, and as it was first written."""
_UNICAST, _EXAMPLES = IPv6Network("2000::/3"), IPv6Network("3fff::/20")
"""Where the public addresses of IPv6 are, and what is for documents there."""
REACHES = ("public", "private", "loopback", "link_local", "metadata")
"""Kinds of addresses that an operator may let requests reach."""
_METADATA = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
        ),
    )
)
_TOKEN = re.compile(
    r"(?P<cloud_key>\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}\b)|"
    r"(?P<access_token>\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{22,}|\bxox[abprs]-[\w-]{10,}|"
    r"\bglpat-[\w-]{20}|\bnpm_[A-Za-z0-9]{36}\b|\bpypi-AgE[\w-]{16,}|\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,})|"
    r"(?P<private_key>-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----\s*(?:\\n)?[A-Za-z0-9+/=]{16})"
)
_WORD = re.compile(r"[A-Za-z]{1,16}\Z")
_SCOPED = re.compile(r"\A/@[a-z0-9][a-z0-9-]{0,40}%2[fF](?=[a-z0-9])")
"""The name of a package in a scope, whose slash its registry wants escaped."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_SRI = re.compile(r"sha(?:256|384|512)-[A-Za-z0-9+/_-]{40,88}={0,2}\Z")
_CODED = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{6,}")
_ASSET = re.compile(r"\.(m?js|css|png|jpe?g|gif|svg|webp|ico|woff2?|ttf|map|json|wasm)\Z")
_MARKS = frozenset({"v", "ver", "version", "hash", "h", "rev", "cb"})
"""Parameters that name the version of an asset."""
_DIGITS = re.compile(r"\d+\Z")
_NUMBERED = re.compile(r"([a-z]{9,12})\d{1,4}\Z")
_PRODUCTS = re.compile(r"[A-Za-z][A-Za-z-]{0,15}(/\d{1,3}(\.\d{1,3}){0,2})?\Z")
_MARK = re.compile(r'(W/)?"[\w.-]{1,16}"\Z', re.ASCII)
_VERSION = re.compile(r"v?\d+(?:[.\-+]?[a-z0-9]{1,6}){0,6}\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Url:
    """An address in its parts; `port` is the one that is meant where none is written."""

    scheme: str
    host: str
    port: int
    path: str
    query: str
    fragment: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a text is no address that is judged."""

    code: str
    detail: str


def parse(text: str, *, bare_hosts: bool = False) -> Url | Trouble:
    """What the URL names. A Trouble for anything that two parsers could read in two ways, and for a bare host
    unless the caller takes them; the host of an address in brackets is the address."""
    if len(text) > MAX_URL:
        return Trouble("too_long", f"a URL of more than {MAX_URL} characters")
    if not text.isascii():
        return Trouble("not_ascii", "letters beyond ASCII; write the host as it is registered")
    if not _LEGAL.match(text) or "\n" in text:
        return Trouble("illegal", "a character that a URL does not have")
    found = _URL.match(text)
    if found is None:
        return Trouble("no_authority", "not of the form scheme://host/path")
    for escape in _ESCAPE.finditer(text):
        digits = escape[1] or ""
        if len(digits) != 2 or not _HEX.match(digits):
            return Trouble("escape", "a % that no two hexadecimal digits follow")
        if int(digits, 16) < 32 or int(digits, 16) == 127 or digits.lower() == "5c":
            return Trouble("escape", f"%{digits} encodes a control character or a backslash")
    authority = found["authority"]
    if "@" in authority:
        return Trouble("userinfo", "a name before @ in the host")
    if not found["path"] and "@" in text:
        return Trouble("userinfo", "an @ behind a host that no / ends: some take what follows for the host")
    in_brackets = bare_hosts and authority.startswith("[")
    if "%" in authority or ("[" in authority and not in_brackets):
        return Trouble("host", "an escaped host or an address in brackets")
    host, colon, port = authority.partition(":")
    if in_brackets:
        host, _, rest = authority[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        if colon not in ("", ":") or "]" not in authority:
            return Trouble("host", "an address in brackets that is not closed")
    if colon and not (port.isdigit() and len(port) <= 5 and str(int(port)) == port):
        return Trouble("port", "a port that is not a plain number")
    scheme = found["scheme"].lower()
    host = host.lower()
    plain = (bare_hosts and is_bare(host)) or (_HOST.match(host) and len(host) <= 253)
    if not plain or in_brackets != (":" in host):
        plain_form = "a host that is not in its plain form, as api.example.org, api, 127.0.0.1 or [::1]"
        full_name = "not a full host name (addresses, short names and a final dot are refused)"
        return Trouble("host", plain_form if bare_hosts else full_name)
    number = int(port) if port else {"https": 443, "http": 80}.get(scheme, 0)
    path = found["path"]
    named = _SCOPED.sub("/scoped", path)
    if _climbs(path) or re.search(r"%2[ef]", named, re.IGNORECASE):
        return Trouble("path", "a path with .. or an escaped dot or slash")
    if re.search(r"%25", text):
        return Trouble("escape", "an escape within an escape")
    if "#" in (found["fragment"] or ""):
        return Trouble("illegal", "two fragments")
    return Url(scheme, host, number, path, found["query"] or "", found["fragment"] or "")


def is_bare(host: str) -> bool:
    """Whether a host is an address in its one plain form or a name of one label, such as `localhost`."""
    try:
        found = ip_address(host)
    except ValueError:
        return _LABEL.match(host) is not None
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return False  # which is written in two ways
    return str(found) == host


def _climbs(path: str) -> bool:
    """True when `..` leads above the first folder, or is not written as itself."""
    depth = 0
    for part in path.removeprefix("/").split("/"):
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return unquote_plus(path).split("/").count("..") != path.split("/").count("..")


def secret_in(text: str) -> str:
    """The kind of secret whose value stands in the text, or nothing. The name of one is none."""
    found = _TOKEN.search(text)
    return found.lastgroup or "" if found else ""


def kind_of(address: str) -> str:
    """What sort of place an address is in: public, or why it is none that a request may reach."""
    try:
        found = _meant(address)
    except ValueError:
        return "malformed"
    for kind, true in (
        ("loopback", found.is_loopback),
        ("link_local", found.is_link_local),
        ("multicast", found.is_multicast),
        ("unspecified", found.is_unspecified),
        ("private", found.is_private or not found.is_global),
        ("private", isinstance(found, IPv6Address) and (found not in _UNICAST or found in _EXAMPLES)),
    ):
        if true:
            return kind
    return "public"


def reach_of(address: str) -> str:
    """`kind_of`, where those at which clouds hand out keys to machines are a kind of their own."""
    kind = kind_of(address)
    if kind != "malformed" and _meant(address) in _METADATA:
        return "metadata"
    return kind


def _meant(address: str) -> IPv4Address | IPv6Address:
    """The address, or the one of IPv4 that one of IPv6 stands for: mapped, translated, in a tunnel."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv4Address):
        return found
    inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
    if inner is None and int(found) > 1 and any(found in network for network in _TRANSLATED):
        inner = IPv4Address(int(found) & 0xFFFFFFFF)
    return inner or found


def payload(url: Url) -> Trouble | None:
    """What in the URL looks like data that is carried out; None when it looks like a name of a page."""
    whole = unquote_plus("/".join((url.path, url.query, url.fragment)))
    if _SECRET.search(whole) or _SECRET.search(whole[::-1]):
        return Trouble("secret", "the URL holds something that looks like a secret")
    if len(url.query) > MAX_QUERY:
        return Trouble("budget", f"a query of more than {MAX_QUERY} characters")
    pairs = [pair for pair in re.split(r"[&;]", url.query) if pair]
    if len(pairs) > 8:
        return Trouble("budget", "a query of more than 8 parts")
    numbers = coded = 0
    for pair in pairs:
        name, _, value = pair.partition("=")
        if not re.match(r"[A-Za-z][A-Za-z_.\[\]-]{0,23}\d?\Z", re.sub(r"(?i)%5B%5D\Z", "[]", name)):
            return Trouble("encoded", "a query parameter whose name is not a word")
        value = unquote_plus(value)
        if (name == "integrity" and _integrity(value)) or _UUID.match(value):
            continue
        if _ASSET.search(url.path) and name in _MARKS and re.match(r"[A-Za-z0-9]{4,16}\Z", value):
            if _is_text(value):
                return Trouble("encoded", f"the mark {name} is coded text")
            coded += 1
            continue
        numbers += len(re.findall(r"\d+", value))
        coded += bool(_CODED.search(value))
        if len(value.split()) > 7 or len(value) > 90:
            return Trouble("budget", f"the query parameter {name} is longer than a search")
        if not _readable(value, 12):
            return Trouble("encoded", f"the query parameter {name} looks encoded")
    if coded > 1:
        return Trouble("encoded", "a query of several coded values")
    if numbers > 6:
        return Trouble("encoded", "a query of many numbers")
    names = [pair.partition("=")[0] for pair in pairs]
    if len(set(names)) < len(names):
        return Trouble("encoded", "a query that repeats a parameter")
    if url.fragment and not (_readable(unquote_plus(url.fragment), 16) or _digest(url.fragment)):
        return Trouble("encoded", "the fragment looks encoded")
    return _path(url)


def odd_mark(header: str, value: str) -> bool:
    """True for the value of a header that names a program or a version, and is more than such a name."""
    form = {"user-agent": _PRODUCTS, "if-none-match": _MARK}.get(header)
    return form is not None and not (form.match(value) and _readable(value, 8))


def _path(url: Url) -> Trouble | None:
    parts = [unquote_plus(part) for part in url.path.split("/") if part]
    if len(parts) > 16 or len(url.path) > 400:
        return Trouble("budget", "a path of more than 16 parts or 400 characters")
    # An allowed host of files serves packages under their own hash; elsewhere a hash may carry data out.
    if url.host.startswith("files.") and re.match(
        r"/packages/[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{60}/[A-Za-z0-9][\w.+-]*\.(whl|tar\.gz|zip)(\.metadata)?\Z",
        url.path,
    ):
        return None
    coded = 0
    whole = "".join(part for part in parts if _HEX.match(part))
    if len(whole) >= 12 and _is_text(whole):
        return Trouble("encoded", "the parts of the path are coded text")
    for index, part in enumerate(parts):
        stem = re.sub(r"(\.[A-Za-z][A-Za-z0-9]{0,5}){1,2}\Z", "", part)
        if _UUID.match(stem):
            coded += 1
        elif re.match(r"[0-9a-f]{40}\Z|[0-9a-f]{64}\Z", stem):
            before = parts[index - 1] if index else ""
            if before not in ("commit", "commits", "tree", "blob", "raw", "blobs", "archive") or not _random(
                unhexlify(stem)
            ):
                return Trouble("encoded", "a hash where none belongs")
            coded += 1
        elif not _readable(stem, 12):
            return Trouble("encoded", "a part of the path looks encoded")
        elif _CODED.search(stem) or (_HEX.match(stem) and not stem.isdigit() and not stem.isalpha()):
            coded += 1
    if coded > 2:
        return Trouble("encoded", "a path of many encoded parts")
    return None


def _digest(fragment: str) -> bool:
    """True for the hash of a file as package indexes write it behind its address."""
    name, _, digest = fragment.partition("=")
    return name == "sha256" and re.match(r"[0-9a-f]{64}\Z", digest) is not None and _random(unhexlify(digest))


def _random(data: bytes) -> bool:
    """False for bytes most of which are letters and signs: of random ones a third are."""
    return sum(32 <= byte < 127 for byte in data) < len(data) * 3 // 4


def _integrity(value: str) -> bool:
    """True for a hash as npm writes it, whose bytes are no text."""
    if not _SRI.match(value):
        return False
    coded = value.partition("-")[2].replace("+", "-").replace("/", "_").rstrip("=")
    data = urlsafe_b64decode(coded + "=" * (-len(coded) % 4)) if len(coded) % 4 != 1 else b""
    return len(data) in (32, 48, 64) and _random(data)


def _readable(text: str, run: int) -> bool:
    """True for words, numbers, versions, slugs and short marks; False for what looks like coded bytes.

    A piece may mix letters and digits only up to `run` characters, and must not decode to text.
    """
    if not text:
        return True
    for piece in re.split(r"[\s/_.~+,:;()'!@$*=&|<>\"-]+", text):
        if not piece or (_DIGITS.match(piece) and len(piece) <= 12):
            continue
        if not piece.isascii():
            if len(piece) > 32:
                return False
            continue
        if len(piece) > 40:
            return False
        if piece.isalpha() and _wordlike(piece):
            continue
        named = _NUMBERED.match(piece)
        if named and _wordlike(named[1]) and not _is_text(piece):
            continue
        if len(piece) > run + 4 or (len(piece) > run and not _VERSION.match(piece)):
            return False
        if len(piece) >= 8 and _is_text(piece):
            return False
    return True


def _wordlike(piece: str) -> bool:
    """True for letters that could be a word: not of mixed case but as CamelCase, with vowels among them."""
    if len(piece) <= 8:
        return True
    turns = sum(1 for a, b in itertools.pairwise(piece) if a.islower() and b.isupper())
    short_humps = len(re.findall(r"[A-Z][a-z]?(?=[A-Z]|\Z)", piece))
    vowels = sum(piece.lower().count(vowel) for vowel in "aeiouy")
    gap = max(len(run) for run in re.split("[aeiouy]", piece.lower()))
    if len(piece) > 24 and turns == 0:
        return False
    return turns <= 4 and short_humps <= 3 and vowels * 5 >= len(piece) and gap <= 5


def _is_text(piece: str) -> bool:
    """True when the piece is the hexadecimal or base64 of printable text."""
    candidates = []
    if _HEX.match(piece):
        candidates.append(unhexlify(piece))
    if not piece.isalpha() or not piece.islower():
        try:
            candidates.append(urlsafe_b64decode(piece + "=" * (-len(piece) % 4)))
        except (Base64Error, ValueError):
            pass
    try:
        candidates.append(b32decode(piece.upper() + "=" * (-len(piece) % 8)))
    except (Base64Error, ValueError):
        pass
    return any(len(data) >= 6 and all(32 <= byte < 127 for byte in data) for data in candidates)
