"""Runners register, are heard, fall silent; queues and reasons; what a team sees and what it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pynvml
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from process_kit import WAIT_S
from spakweb.face.fleet import show
from spakweb.ground.errors import Refused
from spakweb.store.fleet.models import SILENT, Runner
from spakweb.store.runs.models import Run
from spakweb.work.fleet import actions, devices

HERE = Path(__file__).parent
CARD = {"name": "Fake 0", "memory_used": 4 << 30, "memory_total": 16 << 30, "load_percent": 87, "celsius": 61}


def beat(name: str = "one", queues: tuple[str, ...] = ("gpu",), **more: Any) -> Runner:
    return actions.heartbeat(name, process=f"host:{name}", queues=queues, devices=(), **more)


@pytest.fixture
def queued(cast: Any) -> Callable[..., Run]:
    """`queued(key, minutes)`: a run that has waited so long in gpu."""

    def make(key: str, minutes: int = 1, **more: Any) -> Run:
        columns = {
            "team": cast.team, "version": cast.spec.head, "key": key, "name": f"run {key}", "queue": "gpu",
            "enqueued_at": timezone.now() - timedelta(minutes=minutes), **more,
        }  # fmt: skip
        return Run.objects.create(**columns)

    return make


def hold(run: Run, by: str) -> None:
    until = timezone.now() + timedelta(seconds=30)
    Run.objects.filter(pk=run.pk).update(holder=by, lease_until=until, state="running")


# ---- registering, being heard


def test_a_heartbeat_keeps_a_runner_alive(db: None) -> None:
    made = beat(slots=2, labels=["a100"])
    assert made.alive and (made.queues, made.slots, made.labels) == (["gpu"], 2, ["a100"])
    assert beat(queues=("default", "gpu")).queues == ["default", "gpu"]
    assert Runner.objects.count() == 1 and Runner.objects.get().labels == ["a100"]
    Runner.objects.update(seen_at=timezone.now() - SILENT)
    assert not Runner.objects.get().alive


def test_one_that_leaves_in_good_order_is_not_free(db: None) -> None:
    assert beat().alive and beat("two").alive
    actions.leave("host:one")
    assert [(runner.name, runner.alive) for runner in Runner.objects.all()] == [("one", False), ("two", True)]
    actions.leave("host:one")
    assert beat().alive


def test_a_registered_runner_has_a_token(db: None) -> None:
    made, token = actions.register("far", ["gpu"], ["a100"])
    assert token not in json.dumps([made.token_hash, made.name]) and not made.alive
    for wrong in ("", "x", token[:-1]):
        with pytest.raises(Refused) as caught:
            beat("far", token=wrong)
        assert (caught.value.code, caught.value.status) == ("web.runner", 403)
    assert not Runner.objects.get().alive
    assert beat("far", token=token).alive
    _, newer = actions.register("far", ["gpu"])
    with pytest.raises(Refused):
        beat("far", token=token)
    assert newer != token and beat("far", token=newer).alive


def test_one_that_is_removed_while_it_is_heard_is_gone(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    _, token = actions.register("far", ["gpu"])
    monkeypatch.setattr(actions.nvml, "readings", lambda: actions.withdraw("far") and [])
    with pytest.raises(Refused):
        actions.heartbeat("far", process="host:far", queues=["gpu"], token=token)
    assert not Runner.objects.exists()


def test_in_production_strangers_are_not_heard(db: None, settings: Any) -> None:
    settings.PRODUCTION = True
    with pytest.raises(Refused):
        beat("stranger")
    assert not Runner.objects.exists()


@pytest.mark.parametrize("name", ["", "-x", "a b", "a\n", "ä", "x" * 81, "<b>"])
def test_names(db: None, name: str) -> None:
    for call in (lambda: beat(name), lambda: beat(queues=(name,)), lambda: actions.register(name, [])):
        with pytest.raises(Refused):
            call()
    assert not Runner.objects.exists()


def test_the_command(db: None) -> None:
    out = StringIO()
    call_command("runner", "add", "far", "--queue", "gpu", "--label", "a100", stdout=out)
    token = out.getvalue().strip()
    assert beat("far", token=token).labels == ["a100"]
    call_command("runner", "list", stdout=out)
    assert "far  alive  gpu" in out.getvalue()
    call_command("runner", "remove", "far")
    for words in (("remove", "far"), ("add", "a b")):
        with pytest.raises(CommandError):
            call_command("runner", *words)


@pytest.mark.django_db(transaction=True)
def test_a_thread_that_beats(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """It goes on after what goes wrong, says it once, and stops when it is told to."""
    monkeypatch.setattr(actions, "BEAT_S", 0.01)
    _, token = actions.register("far", ["gpu"])
    stop, told = threading.Event(), {"process": "host:far", "queues": ["gpu"], "devices": ()}
    thread = actions.Beating(stop, "far", token="wrong", **told)
    thread.start()
    stop.wait(0.2)
    assert not Runner.objects.get().alive
    stop.set()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert len([line for line in caplog.messages if "no heartbeat" in line]) <= 1
    thread = actions.Beating(threading.Event(), "far", token=token, **told)
    thread._stop_asked.set()
    thread.run()
    assert Runner.objects.get().alive


# ---- devices


def test_no_driver_no_readings() -> None:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        assert devices.readings() == []
    else:
        assert all(device["name"] for device in devices.readings())


def test_a_driver_that_fails_costs_no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    for name in ("nvmlDeviceGetCount", "nvmlShutdown"):
        monkeypatch.setattr(pynvml, name, lost)
    assert devices.readings() == []


def test_readings_of_a_fake_library(tmp_path: Path) -> None:
    """The real binding on a library that has two devices; what one does not give is absent."""
    line = ["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "libnvidia-ml.so.1"), str(HERE / "fake_nvml.c")]
    subprocess.run(line, check=True)
    code = "import json; from spakweb.work.fleet.devices import readings; print(json.dumps(readings()))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True, check=True, timeout=WAIT_S,
    )  # fmt: skip
    first, second = json.loads(done.stdout)
    assert first == {**CARD, "uuid": "GPU-0", "watts": 250.5}
    assert second["load_percent"] == 0 and not {"watts", "celsius"} & set(second)


# ---- queues and reasons


def test_queues_have_depth_and_age(cast: Any, queued: Callable[..., Run]) -> None:
    beat()
    queued("a", 3), queued("b", 9), queued("c", 1, queue="default")
    queued("done", 20, state="succeeded"), hold(queued("held", 30), "host:one")
    found = {queue.name: queue for queue in show.queues(show.runners(), show.in_line())}
    assert (found["gpu"].depth, found["gpu"].runners) == (2, 1)
    assert (found["default"].depth, found["default"].runners) == (1, 0)
    age = timezone.now() - found["gpu"].oldest
    assert timedelta(minutes=8) < age < timedelta(minutes=10)


def test_why_a_run_waits(cast: Any, queued: Callable[..., Run]) -> None:
    runs = [queued(key, 9 - number) for number, key in enumerate("abcdefghijk")]
    assert show.why_waits(runs[0]) == "first for gpu, which no runner serves"
    actions.register("one", ["gpu"])
    assert show.why_waits(runs[0]) == "first for gpu, runner one never reported"
    Runner.objects.all().delete()
    beat()
    assert show.why_waits(runs[0]) == "first for gpu; a runner is free to take it"
    hold(queued("held", 1), "host:one")
    assert show.why_waits(runs[2]).startswith("third for gpu, runner one busy since ")
    assert show.why_waits(runs[10]).startswith("number 11 for gpu")
    Runner.objects.update(seen_at=timezone.now() - timedelta(days=2))
    assert show.why_waits(runs[2]).startswith("third for gpu, runner one last reported 20")
    assert show.why_waits(queued("done", 1, state="succeeded")) == ""


def test_why_a_run_waits_though_a_runner_is_free(
    cast: Any, queued: Callable[..., Run], settings: Any
) -> None:
    settings.TEAM_RUNS = 1
    beat(slots=4)
    hold(queued("held", 1), "host:one")
    run = queued("next")
    assert show.why_waits(run) == "first for gpu, the team already runs as many at once as it may: 1"
    theirs = queued("theirs", team=cast.other_team)
    assert show.why_waits(theirs) == "second for gpu; a runner is free to take it"
    run.reason, settings.TEAM_RUNS = "unavailable.sandbox: no engine", 16
    assert show.why_waits(run).endswith("tried again within a minute: unavailable.sandbox: no engine")


def test_teams_take_turns_in_what_is_shown(cast: Any, queued: Callable[..., Run]) -> None:
    many = [queued(f"r{number}", 60 - number) for number in range(20)]
    theirs = [queued(f"t{number}", 9 - number, team=cast.other_team) for number in range(2)]
    for run, place in (
        (many[0], "first"),
        (theirs[0], "second"),
        (theirs[1], "fourth"),
        (many[19], "number 22"),
    ):
        assert show.why_waits(run).startswith(f"{place} for gpu")


def test_a_lease_that_ran_out_is_not_busy(cast: Any, queued: Callable[..., Run]) -> None:
    """A runner that vanished with a run: nobody is shown to work on it, and it waits again."""
    beat()
    run = queued("lost")
    hold(run, "host:one")
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    (busy,) = show.runners(cast.team)
    assert not busy.runs and busy.since is None
    run.refresh_from_db()
    gone = "its runner is gone, and a free one continues it within seconds"
    assert show.why_waits(run) == f"first for gpu; {gone}"


# ---- the page


def test_the_empty_page(cast: Any) -> None:
    text = cast.client("vera").get("/t/kernel-tuners/fleet/").content.decode()
    assert "No runner yet" in text and "manage.py runner add" in text and "Queues" not in text


def test_the_page(cast: Any, queued: Callable[..., Run]) -> None:
    actions.heartbeat("one", process="host:one", queues=["gpu"], labels=["a100"], devices=[CARD])
    beat("two", ("default",))
    Runner.objects.filter(name="two").update(seen_at=timezone.now() - timedelta(hours=3))
    mine, foreign = queued("mine"), queued("foreign", team=cast.other_team, name="their secret")
    hold(mine, "host:one"), hold(foreign, "host:one")
    queued("later"), queued("theirs", team=cast.other_team, name="also secret")
    text = cast.client("vera").get("/t/kernel-tuners/fleet/").content.decode()
    for word in ("Fake 0", "4.0", "16.0", "load 87 %", "61 °C", "a100", "run mine", "run later",
                 "not responding", "3 hours ago", "first for gpu, runner one busy since",
                 "1 run of other teams"):  # fmt: skip
        assert word in text.replace("\xa0", " "), word
    assert "secret" not in text and " W<" not in text
    part = cast.client("vera").get("/t/kernel-tuners/fleet/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part and "Fake 0" in part


def test_what_was_never_heard_shows_nothing_that_it_does(cast: Any) -> None:
    """Readings of a silent runner are said to be old; links within a card can be pressed."""
    actions.register("new", ["gpu"])
    text = cast.client("vera").get("/t/kernel-tuners/fleet/").content.decode()
    assert "not seen yet: start its worker" in text and "slot" not in text and "NVIDIA" not in text
    actions.heartbeat("old", process="host:old", queues=["gpu"], devices=[CARD])
    Runner.objects.filter(name="old").update(seen_at=timezone.now() - timedelta(hours=3))
    text = cast.client("vera").get("/t/kernel-tuners/fleet/").content.decode()
    assert "the figures are from then" in text and "0 of 1 slot in use" in text
    assert "tile-link" not in text  # its whole card would be the link


def test_names_of_devices_are_text(cast: Any) -> None:
    actions.heartbeat("one", process="p", queues=["gpu"], devices=[{"name": "<script>alert(1)</script>"}])
    text = cast.client("vera").get("/t/kernel-tuners/fleet/").content.decode()
    assert "&lt;script&gt;alert" in text and "<script>alert" not in text
