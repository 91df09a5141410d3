"""A program with a token, and a person who may make one."""

from __future__ import annotations

from typing import Any

from django.test import Client

LIST = "/api/v1/teams/kernel-tuners/runs/"


def program(secret: str, **headers: str) -> Client:
    """Asks with the token."""
    return Client(headers={"authorization": f"Bearer {secret}", **headers})


def asked_again(cast: Any, name: str) -> Client:
    """Signed in, and asked for the password just now."""
    client: Client = cast.client(name)
    client.post("/account/reauthenticate/", {"password": "a long secret"})
    return client
