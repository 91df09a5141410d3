"""The web checklist: each row of it with the tests that prove it, and what no other file asks.

CHECKLIST names the rows and their tests. Tests here: forms of another site on every address that changes
something, names of a caller that a client makes up, and what is ever deserialised.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from address_table import TEAM_ROUTES
from spakweb.celery import app
from spakweb.work.teams import bearer
from token_kit import LIST, program

TESTS = Path(__file__).resolve().parents[2]
ROOT = TESTS.parent
CHECKLIST: dict[str, tuple[str, ...]] = {
    "csrf": (
        "web/ground/test_web_checklist.py::test_csrf_of_every_form",
        "web/ground/test_access.py::test_forms_need_their_token",
        "web/api/test_api.py::test_a_form_of_another_site_starts_nothing",
        "web/ground/test_programs.py::test_a_session_beside_it_counts_for_nothing",
    ),
    "websocket origin and rights": (
        "web/ground/test_origins.py::test_only_pages_of_ours",
        "web/ground/test_origins.py::test_the_application_sees_only_what_is_allowed",
        "web/live/test_stream.py::test_strangers_and_nobody_see_nothing",
        "web/live/test_stream.py::test_a_socket_ends_with_the_membership",
        "web/live/test_program_streams.py::test_sockets_take_none",
        "web/live/test_program_streams.py::test_what_was_revoked_is_cut_off_within_a_second",
    ),
    "idor across teams": (
        "web/ground/test_access.py::test_every_address_is_in_a_table",
        "web/ground/test_access.py::test_a_stranger_learns_nothing",
        "web/ground/test_access.py::test_things_of_another_team_are_not_reached_through_ones_own",
        "web/api/test_api_rights.py::test_every_method_of_every_address_has_a_row",
        "web/api/test_api_rights.py::test_a_stranger_learns_nothing",
        "web/runs/test_token_imports.py::test_no_address_shows_a_token_what_a_run_took_in",
    ),
    "xss from traces": (
        "e2e/reviews/test_hostile_story.py::test_a_hostile_name_in_every_field",
        "web/reviews/test_hostile_words.py::test_a_hostile_name_in_every_field",
        "web/ground/test_attacks.py::test_hostile_names_are_words_on_every_page",
        "web/ground/test_settings_web.py::test_the_policy_of_content",
        "web/runs/test_runs_by_api.py::test_files_one_and_all",
    ),
    "ssrf": (
        "web/hooks/test_webhooks.py::test_an_address_that_is_refused",
        "web/hooks/test_webhooks.py::test_a_name_that_leads_inside_is_not_connected_to",
        "web/hooks/test_webhooks.py::test_the_address_that_was_judged_is_the_one_connected_to",
        "web/hooks/test_webhooks.py::test_a_redirect_is_not_followed",
        "web/sources/test_bad_repositories.py::test_a_name_that_leads_inside_is_not_asked",
    ),
    "tokens": (
        "web/ground/test_programs.py::test_only_its_hash_is_kept",
        "web/ground/test_programs.py::test_it_is_made_shown_once_and_revoked",
        "web/ground/test_programs.py::test_one_that_is_over",
        "web/api/test_api_rights.py::test_roles_and_scopes",
        "web/api/test_api_rights.py::test_who_is_nobody_is_told_of_tokens",
        "web/live/test_program_streams.py::test_what_was_revoked_is_cut_off_within_a_second",
    ),
    "rate limit": (
        "web/ground/test_web_checklist.py::test_a_name_that_a_caller_makes_up_gets_no_more_tries",
        "web/ground/test_attacks.py::test_a_locked_out_sign_in_is_answered_429",
        "web/ground/test_programs.py::test_wrong_ones_are_held_up_and_right_ones_are_not",
        "web/api/test_api.py::test_too_many_requests_are_told_when_to_come_again",
        "web/incoming/test_pushes.py::test_who_sends_wrong_ones_waits_and_right_ones_are_never_held_up",
        "web/incoming/test_pushes.py::test_too_many_in_a_minute_are_refused_and_logged_once",
    ),
    "upload": (
        "web/runs/test_brought_files.py::test_a_request_that_is_too_long_is_not_read",
        "web/incoming/test_pushes.py::test_the_server_reads_no_more_of_a_message_than_its_bound",
        "workspace/test_unpack.py::test_names_that_lead_out_or_cannot_be_made_are_refused",
        "web/ground/test_attacks.py::test_ten_megabytes_are_told_as_too_large",
    ),
    "secrets": (
        "runner/test_redacted_runs.py::test_a_planted_key_is_nowhere",
        "runner/test_redacted_runs.py::test_what_cannot_be_cleaned_is_not_recorded_and_the_run_can_go_on",
        "web/worker/test_team_secrets.py::test_the_value_reaches_the_tool_and_nothing_that_is_kept",
        "web/hooks/test_webhooks.py::test_no_secret_is_in_the_database",
        "web/incoming/test_pushes.py::test_a_rotated_secret_is_taken_for_a_day",
        "web/triggers/test_triggers.py::test_a_program_adds_one_and_no_table_has_its_secret",
        "web/ground/test_programs.py::test_no_log_has_one",
    ),
    "docker socket": (
        "test_compose.py::test_a_service_is_hardened",
        "test_compose.py::test_nothing_else_is_known_to_be_dangerous",
        "sandbox/test_docker_parts.py",
    ),
    "deserialisation": (
        "web/ground/test_web_checklist.py::test_messages_of_workers_are_json",
        "web/ground/test_web_checklist.py::test_no_module_of_the_platform_reads_pickles",
        "web/ground/test_cache.py::test_nothing_in_the_cache_is_executed",
    ),
    "admin, debug": (
        "web/ground/test_settings_web.py::test_the_documented_production_settings_have_no_warning",
        "web/ground/test_attacks.py::test_an_error_page_asks_nothing_of_a_database_that_fails",
        "web/ground/test_web_checklist.py::test_there_is_no_admin_of_django",
    ),
    "races": (
        "web/runs/test_people_approve.py::test_the_first_of_two_people_counts",
        "web/runs/test_all_at_once.py::test_every_action_at_once",
        "web/api/test_api.py::test_a_request_that_is_under_way_is_not_begun_twice",
    ),
}  # fmt: skip
SAMPLES = {"int": 1, "slug": "kernel-tuners", "str": "x", "path": "x", "uuid": "0" * 32}
PICKLES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}


@cache
def functions(path: str) -> frozenset[str]:
    found = ast.walk(ast.parse((TESTS / path).read_text()))
    return frozenset(one.name for one in found if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("row", sorted(CHECKLIST))
def test_a_row_has_its_tests(row: str) -> None:
    for named in CHECKLIST[row]:
        path, _, name = named.partition("::")
        assert (name in functions(path)) if name else functions(path), named


# ---- csrf


def patterns(items: Any) -> Any:
    for item in items:
        if isinstance(item, URLPattern):
            yield item
        else:
            yield from patterns(item.url_patterns)


OUTSIDE = {"spak-oidc-exchange", "spak-hook-receive", "spak-mcp"}
"""Addresses that no session counts on: what is sent there proves itself."""
POSTED = sorted(name for name, route in TEAM_ROUTES.items() if route.method == "post")


@pytest.mark.parametrize("name", POSTED)
def test_csrf_of_every_form(cast: Any, name: str) -> None:
    """A form that another site sends with somebody's session changes nothing, whatever it is for."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast["alice"])
    kinds = {
        key: type(kind).__name__ for key, kind in get_resolver().reverse_dict.getlist(name)[0][3].items()
    }
    args = {key: SAMPLES.get(kind.removesuffix("Converter").lower(), "x") for key, kind in kinds.items()}
    answer = client.post(reverse(name, kwargs=args), TEAM_ROUTES[name].given)
    assert answer.status_code == 403 and b"web.csrf" in answer.content


def test_csrf_is_asked_of_every_view_but_three() -> None:
    """Views of the API ask for it where they are asked with a session (rest_framework's own exemption)."""
    free = {
        one.name for one in patterns(get_resolver().url_patterns)
        if getattr(one.callback, "csrf_exempt", False) and not str(one.name).startswith("spak-api-")
    }  # fmt: skip
    assert free == OUTSIDE


# ---- the others


def test_a_name_that_a_caller_makes_up_gets_no_more_tries(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever guesses tokens counts as one address, whatever the request says of where it comes from."""
    monkeypatch.setattr(bearer, "WINDOW_S", 10**9)
    names = ("x-forwarded-for", "forwarded", "x-real-ip", "client-ip")
    found = [
        program("wrong", **dict.fromkeys(names, f"10.0.0.{number}")).get(LIST).status_code
        for number in range(bearer.MOST_WRONG + 2)
    ]
    assert found == [401] * bearer.MOST_WRONG + [429] * 2


def test_messages_of_workers_are_json() -> None:
    assert set(app.conf.accept_content) == {"json"}
    assert (app.conf.task_serializer, app.conf.result_serializer) == ("json", "json")


def test_no_module_of_the_platform_reads_pickles() -> None:
    for path in (ROOT / "platform").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not PICKLES & {name.split(".")[0] for name in names}, path


def test_there_is_no_admin_of_django(client: Client, db: None, settings: Any) -> None:
    assert "django.contrib.admin" not in settings.INSTALLED_APPS and not settings.DEBUG
    assert client.get("/admin/").status_code == 404
