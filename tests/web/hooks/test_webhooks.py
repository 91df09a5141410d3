"""Webhooks: what is sent, to whom, how it is signed, when it is tried again, and where it never goes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.db.models import Sum
from django.http import Http404

from jobs_kit import worked
from run_rows_kit import begun
from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.hooks import triggers
from spakweb.store.hooks.models import DELIVER, EVENTS, Delivery, Webhook
from spakweb.store.runs.models import Run, State
from spakweb.work.hooks import actions, deliver, signing

REACH = ["public", "loopback"]


class Receiver:
    """A server on loopback that keeps what it is sent and answers with `answers`, the last one for ever."""

    def __init__(self) -> None:
        self.answers = [200]
        self.came: list[tuple[dict[str, str], bytes]] = []
        kept = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                kept.came.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(kept.answers.pop(0) if len(kept.answers) > 1 else kept.answers[0])
                self.send_header("location", "/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *ignored: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://ci.example:{self.server.server_port}/hooks/spak?from=test"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def hook(cast: Any, receiver: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Webhook:
    """Alice's webhook of every event; its name leads to the receiver, and the operator permits that."""
    settings.WEBHOOK_REACH = REACH
    monkeypatch.setattr(deliver, "resolve", lambda host: ("127.0.0.1",))
    return actions.add(cast["alice"], cast.team, receiver.url, EVENTS, "ci")[0]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets time pass for the outbox."""
    passed = timedelta(0)
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + passed)

    def wait(seconds: float) -> None:
        nonlocal passed
        passed += timedelta(seconds=seconds)

    return wait


def attempts() -> int:
    return Delivery.objects.aggregate(tries=Sum("tries"))["tries"] or 0


def work() -> int:
    """What a worker does: one message to each webhook that one is due to. Gives how many were attempted."""
    before = attempts()
    worked(DELIVER)
    return attempts() - before


def run_of(cast: Any, key: str = "r-1") -> Run:
    return begun(cast.team, cast.spec.head, key)


def to(run: Run, state: str, **more: Any) -> None:
    Run.objects.filter(pk=run.pk).update(state=state, **more)


# ---- the outbox


def test_a_state_change_is_one_delivery_to_each_webhook_that_wants_it(cast: Any, hook: Webhook) -> None:
    actions.add(cast["alice"], cast.team, "https://ci.example/", ["failed"])
    run = run_of(cast)
    to(run, State.PAUSED)
    to(run, State.PAUSED)  # no change
    to(run, State.RUNNING)  # not reported
    to(run, State.FAILED, reason="tool.exit")
    rows = list(Delivery.objects.order_by("pk").values_list("webhook__name", "event", "reason"))
    assert rows[0] == ("ci", "paused", "")
    assert sorted(rows[1:]) == [("ci", "failed", "tool.exit"), ("ci.example", "failed", "tool.exit")]


def test_a_change_that_is_rolled_back_is_not_reported(cast: Any, hook: Webhook) -> None:
    run = run_of(cast)
    with pytest.raises(RuntimeError), transaction.atomic():
        to(run, State.FAILED)
        raise RuntimeError
    assert not Delivery.objects.exists()


def test_other_teams_and_webhooks_that_are_off_get_nothing(cast: Any, hook: Webhook) -> None:
    other = begun(cast.other_team, cast.other_spec.head, "r-2")
    to(other, State.FAILED)
    actions.switch(cast["alice"], hook, False)
    to(run_of(cast), State.FAILED)
    assert not Delivery.objects.exists()


def test_the_trigger_is_set_once_and_dropped(cast: Any, hook: Webhook) -> None:
    triggers.install(connection)
    triggers.install(connection)
    run = run_of(cast)
    to(run, State.PAUSED)
    assert Delivery.objects.count() == 1
    triggers.remove(connection)
    to(run, State.FAILED)
    assert Delivery.objects.count() == 1
    triggers.install(connection)


# ---- what is sent


def test_a_message_is_signed_and_names_the_run(cast: Any, hook: Webhook, receiver: Receiver) -> None:
    run = run_of(cast)
    to(run, State.SUCCEEDED, count=7)
    assert work() == 1
    headers, body = receiver.came[0]
    found = json.loads(body)
    assert found["type"] == "run.succeeded"
    data = found["data"]
    assert (data["run"], data["spec"], data["version"], data["records"]) == (run.key, "small", 1, 7)
    assert data["url"].endswith(f"/runs/{run.key}/")
    row = Delivery.objects.get()
    assert (row.state, row.status, row.tries, row.error) == ("delivered", 200, 1, "")
    assert headers["webhook-id"] == row.message
    key = base64.b64decode(signing.secret_of(hook.salt).removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{mac}"
    assert work() == 0


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The vector that the libraries of Standard Webhooks test themselves with."""
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    found = signing.signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_rotated_secret_signs_beside_the_one_before_for_a_day(
    cast: Any, hook: Webhook, receiver: Receiver, later: Callable[[float], None]
) -> None:
    before = signing.secret_of(hook.salt)
    after = actions.rotate(cast["alice"], hook)
    assert before != after
    actions.test(cast["alice"], hook)
    work()
    later(25 * 3600)
    actions.test(cast["alice"], hook)
    work()
    for (headers, body), secrets in zip(receiver.came, [(after, before), (after,)], strict=True):
        at = int(headers["webhook-timestamp"])
        wanted = [signing.signature(secret, headers["webhook-id"], at, body) for secret in secrets]
        assert headers["webhook-signature"].split() == wanted


def test_no_secret_is_in_the_database(cast: Any, hook: Webhook, settings: Any) -> None:
    secret = signing.secret_of(hook.salt)
    assert hook.salt not in secret
    settings.SECRET_KEY = "another key"
    assert signing.secret_of(hook.salt) != secret


# ---- attempts


def test_a_failed_attempt_is_repeated_with_the_same_id_and_body(
    cast: Any, hook: Webhook, receiver: Receiver, later: Callable[[float], None]
) -> None:
    receiver.answers = [503, 500, 200]
    to(run_of(cast), State.FAILED)
    assert work() == 1
    row = Delivery.objects.get()
    assert (row.state, row.status, row.tries) == ("due", 503, 1)
    assert row.error == "The receiver answered 503."
    assert work() == 0  # not before its time
    later(7)
    assert work() == 1
    later(7)
    assert work() == 0  # the second wait is longer
    later(360)
    assert work() == 1
    row.refresh_from_db()
    assert (row.state, row.status, row.tries) == ("delivered", 200, 3)
    assert len({headers["webhook-id"] for headers, _ in receiver.came}) == 1
    assert len({body for _, body in receiver.came}) == 1


def test_it_is_given_up_after_the_last_wait(
    cast: Any, hook: Webhook, receiver: Receiver, later: Callable[[float], None]
) -> None:
    receiver.answers = [500]
    actions.test(cast["alice"], hook)
    for _ in range(len(deliver.RETRY_S) + 1):
        assert work() == 1
        later(13 * 3600)
    assert work() == 0
    assert Delivery.objects.get().state == "failed"


def test_one_at_a_time_and_a_rest_after_a_failure(
    cast: Any, hook: Webhook, receiver: Receiver, later: Callable[[float], None]
) -> None:
    receiver.answers = [500, 200]
    for number in range(3):
        to(run_of(cast, f"r-{number}"), State.FAILED)
    assert work() == 1
    assert work() == 0  # the others wait with it
    later(61)
    while work():
        pass
    assert list(Delivery.objects.values_list("state", flat=True)) == ["delivered"] * 3


def test_410_turns_the_webhook_off(cast: Any, hook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [410]
    actions.test(cast["alice"], hook)
    work()
    hook.refresh_from_db()
    assert not hook.active
    assert Delivery.objects.get().state == "failed"
    assert Event.objects.filter(action="webhook.gone", team=cast.team).exists()


def test_messages_that_fail_in_a_row_turn_the_webhook_off(
    cast: Any, hook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "RETRY_S", ())  # each message has one attempt
    states = []
    for answer in (500, 500, 200, *(500,) * deliver.MOST_FAILED):
        receiver.answers = [answer]
        actions.test(cast["alice"], hook)
        work()
        hook.refresh_from_db()
        states.append(hook.active)
    assert states == [True] * (len(states) - 1) + [False]
    event = Event.objects.get(action="webhook.dead", team=cast.team)
    assert (event.thing, event.detail["failed"]) == (hook.name, deliver.MOST_FAILED)


def test_redelivered_under_the_same_id(cast: Any, hook: Webhook, receiver: Receiver) -> None:
    actions.test(cast["alice"], hook)
    work()
    actions.redeliver(cast["alice"], Delivery.objects.get())
    assert work() == 1
    first, second = (headers["webhook-id"] for headers, _ in receiver.came)
    assert first == second


def test_the_log_is_bounded(cast: Any, hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "KEPT", 2)
    for _ in range(4):
        actions.test(cast["alice"], hook)
        work()
    assert Delivery.objects.count() == 2


def test_a_test_and_a_redelivery_end_the_rest(cast: Any, hook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [500, 200]
    actions.test(cast["alice"], hook)
    assert (work(), work()) == (1, 0)
    actions.test(cast["alice"], hook)
    assert work() == 1 and Delivery.objects.filter(state="delivered").count() == 1


def test_no_message_waits_for_a_clock_that_was_set_back(
    cast: Any, hook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.answers = [500]
    actions.test(cast["alice"], hook)
    assert (work(), work()) == (1, 0)
    hour = clock.now() - timedelta(hours=1)
    monkeypatch.setattr(clock, "now", lambda: hour)
    assert work() == 1


# ---- where it never goes


@pytest.mark.parametrize(
    "url",
    [
        "http://ci.example/", "ftp://ci.example/", "https://127.0.0.1/", "https://localhost/", "https://[::1]/",
        "https://10.0.0.5/", "https://192.168.1.1/x", "https://169.254.169.254/latest/meta-data/",
        "https://[::ffff:10.0.0.5]/", "https://user:word@ci.example/", "https://ci.example/#part", "nothing",
        "", "https:///x", "https://0x7f.1/", "https://2130706433/",
    ],
)  # fmt: skip
def test_an_address_that_is_refused(cast: Any, url: str) -> None:
    with pytest.raises(Refused) as why:
        actions.add(cast["alice"], cast.team, url, ["failed"])
    assert why.value.code == "web.webhook_url"
    assert not Webhook.objects.exists()


@pytest.mark.findings("A10")
@pytest.mark.parametrize("port", [22, 25, 53, 465, 993, 1023])
def test_a_webhook_goes_to_ports_of_the_web_alone(
    cast: Any, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    url = f"https://ci.example:{port}/"
    with pytest.raises(Refused, check=lambda why: why.code == "web.webhook_url"):
        actions.add(cast["alice"], cast.team, url, ["failed"])
    hook = actions.add(cast["alice"], cast.team, "https://ci.example:1024/", ["failed"])[0]
    Webhook.objects.filter(pk=hook.pk).update(url=url)  # one that was added before
    monkeypatch.setattr(deliver, "resolve", lambda host: pytest.fail("it is not even looked up"))
    actions.test(cast["alice"], hook)
    work()
    row = Delivery.objects.get()
    assert (row.state, row.status) == ("due", 0) and f"Port {port} is not one of the web" in row.error


def test_a_name_that_leads_inside_is_not_connected_to(
    cast: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it led outside as it was added: it is looked up and judged at each attempt."""
    hook = actions.add(cast["alice"], cast.team, "https://ci.example/", ["failed"])[0]
    monkeypatch.setattr(deliver, "resolve", lambda host: ("127.0.0.1",))
    actions.test(cast["alice"], hook)
    work()
    row = Delivery.objects.get()
    assert (row.state, row.status) == ("due", 0)
    assert "ci.example is at 127.0.0.1, which is loopback" in row.error
    assert receiver.came == []


def test_the_address_that_was_judged_is_the_one_connected_to(
    cast: Any, receiver: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WEBHOOK_REACH = REACH
    asked: list[str] = []
    monkeypatch.setattr(deliver, "resolve", lambda host: asked.append(host) or ("127.0.0.1",))
    url = f"http://ci.example:{receiver.server.server_port}/"
    hook = actions.add(cast["alice"], cast.team, url, ["failed"])[0]
    actions.test(cast["alice"], hook)
    work()
    assert asked == ["ci.example"]
    assert receiver.came[0][0]["host"] == f"ci.example:{receiver.server.server_port}"


def test_a_redirect_is_not_followed(cast: Any, hook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [302]
    actions.test(cast["alice"], hook)
    work()
    row = Delivery.objects.get()
    assert (row.state, row.status) == ("due", 302)
    assert "Redirects are not followed" in row.error
    assert len(receiver.came) == 1


# ---- people


def test_only_an_admin_and_every_act_is_an_event(cast: Any, hook: Webhook) -> None:
    actions.test(cast["alice"], hook)
    row = Delivery.objects.get()
    for act in (
        lambda user: actions.add(user, cast.team, "https://ci.example/", ["failed"]),
        lambda user: actions.test(user, hook),
        lambda user: actions.redeliver(user, row),
        lambda user: actions.rotate(user, hook),
        lambda user: actions.switch(user, hook, False),
        lambda user: actions.remove(user, hook),
    ):
        with pytest.raises(PermissionDenied):
            act(cast["rita"])
        with pytest.raises(Http404):
            act(cast["charlie"])
    actions.redeliver(cast["alice"], row)
    actions.rotate(cast["alice"], hook)
    actions.switch(cast["alice"], hook, False)
    actions.switch(cast["alice"], hook, True)
    actions.remove(cast["alice"], hook)
    told = Event.objects.filter(team=cast.team, action__startswith="webhook.").order_by("pk")
    assert list(told.values_list("action", flat=True)) == [
        "webhook.made", "webhook.tested", "webhook.redelivered", "webhook.rotated", "webhook.off",
        "webhook.on", "webhook.removed",
    ]  # fmt: skip
    assert not Delivery.objects.exists()


def test_what_is_refused_is_told_in_the_form(cast: Any, settings: Any) -> None:
    client = cast.client("alice")
    base = f"/t/{cast.team.slug}/webhooks/"
    answer = client.post(f"{base}new/", {"url": "https://ci.example/"})
    assert answer.status_code == 400
    assert b"needs an event" in answer.content
    assert b"https://ci.example/" in answer.content
    for _ in range(actions.MOST):
        actions.add(cast["alice"], cast.team, "https://ci.example/", ["failed"])
    answer = client.post(f"{base}new/", {"url": "https://ci.example/", "event": "failed"})
    assert answer.status_code == 409
    hook = Webhook.objects.first()
    assert hook is not None
    actions.switch(cast["alice"], hook, False)
    answer = client.post(f"{base}{hook.pk}/do/", {"do": "test"}, headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (409, "web.webhook_off")
    answer = client.post(f"{base}{hook.pk}/do/", {"do": "dance"}, headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "web.webhook_do")


def test_the_pages_show_the_secret_once_and_hostile_text_as_text(
    cast: Any, hook: Webhook, receiver: Receiver
) -> None:
    client = cast.client("alice")
    base = f"/t/{cast.team.slug}/webhooks/"
    made = client.post(f"{base}new/", {"url": receiver.url, "name": "<img src=x>", "event": "failed"})
    assert made.status_code == 200
    secret = signing.secret_of(Webhook.objects.latest("pk").salt)
    assert secret.encode() in made.content
    page = client.get(f"{base}{Webhook.objects.latest('pk').pk}/")
    assert secret.encode() not in page.content
    assert b"<img src=x>" not in page.content
    rotated = client.post(f"{base}{hook.pk}/do/", {"do": "rotate"})
    hook.refresh_from_db()
    assert signing.secret_of(hook.salt).encode() in rotated.content
    client.post(f"{base}{hook.pk}/do/", {"do": "test"})
    work()
    page = client.get(f"{base}{hook.pk}/").content.decode()
    assert "Delivered" in page
    row = Delivery.objects.get()
    client.post(f"{base}{hook.pk}/do/", {"do": "redeliver", "delivery": row.pk})
    assert work() == 1
    assert client.post(f"{base}{hook.pk}/do/", {"do": "redeliver", "delivery": "9999"}).status_code == 404
