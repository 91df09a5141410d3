"""An issuer of id tokens on loopback: what it publishes, what it was asked, and tokens of its jobs."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from spakweb.work.oidc import keys

AUDIENCE = "https://spak.example"
RSA, OTHER_RSA = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
SHORT_RSA = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC, ED = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()


def jwk(key: Any, kid: str, alg: str) -> dict[str, Any]:
    made = jwt.get_algorithm_by_name(alg).to_jwk(key.public_key(), as_dict=True)
    return {**made, "kid": kid, "use": "sig", "alg": alg}


def pem(key: Any) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))


class Issuer:
    """A server on loopback with the configuration and the keys of an issuer; `hits` are the paths asked."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        self.answers: dict[str, tuple[int, Any]] = {}
        kept = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kept.hits.append(self.path)
                status, body = kept.answers.get(self.path, (404, {}))
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("location", "/elsewhere")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *ignored: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://issuer.example:{self.server.server_port}"
        self.publish(jwk(RSA, "one", "RS256"), jwk(EC, "two", "ES256"), jwk(ED, "three", "EdDSA"))
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def publish(self, *found: dict[str, Any]) -> None:
        self.answers = {
            keys.WELL_KNOWN: (200, {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}),
            "/keys": (200, {"keys": list(found)}),
        }

    def claims(self, **more: Any) -> dict[str, Any]:
        """Those of a job of acme/app on main; None takes one away."""
        now = int(time.time())
        found = {
            "iss": self.url, "aud": AUDIENCE, "sub": "repo:acme/app:ref:refs/heads/main", "iat": now - 5,
            "nbf": now - 5, "exp": now + 300, "jti": f"j{time.monotonic_ns()}", "repository": "acme/app",
            "repository_id": "7", "ref": "refs/heads/main", "environment": "release", "run_id": "99", **more,
        }  # fmt: skip
        return {name: value for name, value in found.items() if value is not None}

    def token(self, key: Any = RSA, alg: str = "RS256", kid: Any = "one", **more: Any) -> str:
        return jwt.encode(self.claims(**more), key, alg, headers={"kid": kid})
