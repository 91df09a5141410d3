"""Writes `sqlite.sql` and `postgresql.sql` next to this file: the tables of the commit that the squashed
migrations begin with (`MIGRATES_EARLIER` of spakweb.ground.database.tables), with a row or more in each.

It runs under that commit, and only there do its dumps mean anything:

    git worktree add ../before COMMIT && cd ../before && make setup
    .venv/bin/python HERE/make.py PLACE            # SQLite; PLACE is an empty folder
    SPAK_WEB_DATABASE_URL=postgresql://... .venv/bin/python HERE/make.py PLACE

The models are asked what a row needs: a field has its first choice, its default or a value of its kind. Rows
that the migrations after that commit look for are named below. What Django makes again out of the models
(permissions, types of content) is left out.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
AT = dt.datetime(2026, 11, 29, 10, 0, tzinfo=dt.UTC)
LATER = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)
"""After any test: what rests or waits until then does so whenever the dump is migrated."""
OURS = (
    "teams oidc audit api fleet specs runs suites sources",
    "reviews hooks incoming triggers schedules folders campaigns telemetry",
)
PG_DUMP = os.environ.get("PG_DUMP", "pg_dump")
REMADE = ("auth_permission", "django_content_type")


def value(field: Any, number: int) -> Any:
    """What a field of the row of that number has."""
    from django.db import models

    if field.choices:
        return field.choices[0][0]
    if field.has_default() and not isinstance(field, models.DateTimeField) and not field.unique:
        return field.get_default()
    kinds: list[tuple[Any, Any]] = [
        (models.DateTimeField, AT),
        (models.DateField, AT.date()),
        (models.JSONField, {"kept": number}),
        (models.BinaryField, b"\x00\xffkept"),
        (models.BooleanField, True),
        (models.GenericIPAddressField, "192.0.2.1"),
        (models.EmailField, f"{field.name}{number}@spak.example"),
        (models.IntegerField, number),
        (models.TextField, f"The {field.name} of row {number}, 'quoted';\nwith two lines"),
    ]
    for kind, made in kinds:
        if isinstance(field, kind):
            return made
    return f"{field.name}{number}"[-(field.max_length or 200) :]


def named_by(model: Any, nullable: bool) -> set[Any]:
    """The other models that its rows name."""
    fields = model._meta.concrete_fields
    return {field.related_model for field in fields if field.is_relation and (nullable or not field.null)} - {
        model
    }


class Rows:
    """The rows made so far, by the name of their model."""

    def __init__(self) -> None:
        self.made: dict[Any, list[Any]] = {}

    def make(self, model: Any, **named: Any) -> Any:
        number = len(self.made.get(model, ())) + 1
        fields = {}
        for field in model._meta.concrete_fields:
            if field.name in named or field.auto_created:
                continue
            if field.is_relation:
                others = self.made.get(field.related_model, [])
                fields[field.name] = None if field.related_model is model else (others or [None])[0]
            else:
                fields[field.name] = value(field, number)
        row = model(**{**fields, **named})
        row.save(force_insert=True)
        self.made.setdefault(model, []).append(row)
        return row


def fill() -> None:
    """A row in every table, and those that migrations look for."""
    from django.apps import apps

    from spak.records import decode

    rows, model = Rows(), apps.get_model
    named = {
        "teams.team": {"slug": "kernels", "name": "Kernels", "commands": "[[command]]"},
        "specs.specversion": {"text": 'task T { step s: llm.query { prompt: "A word?" } }\n'},
        "reviews.approvalrule": {"team": None},
        "runs.upload": {"size": 10_000_000_000},
        "campaigns.campaign": {"faults": 2, "fence": 5, "ended_at": None},
        "folders.folder": {"tries": 3, "not_before": LATER},
        "hooks.webhook": {"rest_until": LATER, "events": "waiting,failed"},
        "reviews.check": {"ended_at": None, "lost": 1},
        "reviews.patch": {"merged": None},
        "sources.branch": {"state": "approved", "tries": 2, "not_before": LATER},
        "telemetry.sent": {"at": None, "tries": 3, "next_at": LATER, "error": "The collector is away"},
    }
    ended = {
        "state": "succeeded",
        "ended_at": LATER,
        "count": 0,
        "head": "",
        "deleted_at": None,
        "erased_at": None,
    }
    named["runs.run"] = {**ended, "deleted_by": None, "lease_until": None, "holder": "", "wanted": ""}
    record = model("runs.runrecord")
    order = [
        one
        for app in " ".join(OURS).split()
        for one in apps.get_app_config(app).get_models()
        if one is not record
    ]
    while order:  # a model after those that its rows name, or else after those that they have to name
        after = [one for one in order if not named_by(one, True) & set(order)]
        after = after or [one for one in order if not named_by(one, False) & set(order)]
        rows.make(after[0], **named.get(after[0]._meta.label_lower, {}))
        order.remove(after[0])
    membership, role = rows.made[model("teams.membership")][0], rows.made[model("teams.namedrole")][0]
    role.members.add(membership)
    spec, version = rows.made[model("specs.spec")][0], rows.made[model("specs.specversion")][0]
    model("specs.spec").objects.filter(pk=spec.pk).update(head=version)
    # a run of the kernel of then that waits for a person, with the first record of its ledger
    line = (HERE.parent / "ended.jsonl").read_bytes().splitlines(keepends=True)[0]
    first = decode(line)
    more = {
        "count": 1,
        "projected": 1,
        "head": first.hash,
        "state": "waiting",
        "ended_at": None,
        "key": "waits",
    }
    more["summary"] = {"waiting": {"id": "x"}, "steps": 1}
    run = rows.make(model("runs.run"), **{**named["runs.run"], **more})
    where = {"run": run, "seq": 0, "kind": first.kind, "authority": first.authority, "at": first.at}
    rows.make(record, **where, task="", step="", line=line)


def dump_sqlite(file: Path) -> str:
    with closing(sqlite3.connect(file)) as tables:
        lines = list(tables.iterdump())
    return "".join(
        f"{line}\n" for line in lines if not re.match(rf'INSERT INTO "({"|".join(REMADE)})"', line)
    )


def dump_postgresql(url: str) -> str:
    """As pg_dump writes it, without what belongs to the server: owners, comments, settings of a session."""
    words = [PG_DUMP, "--no-owner", "--no-acl", "--no-comments", "--inserts", url]
    words += [f"--exclude-table-data={name}" for name in REMADE]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    lines = [
        line for line in text.splitlines() if line and not re.match(r"--|SET |\\|SELECT pg_c.*search", line)
    ]
    text = "\n".join(lines).replace("public.", "") + "\n"
    defaults = r"\n +START WITH 1\n +INCREMENT BY 1\n +NO MINVALUE\n +NO MAXVALUE\n +CACHE 1\n"
    return re.sub(rf"{defaults}|(?<=\()\n +(?=SEQUENCE NAME)|\n +(?=ADD CONSTRAINT)", " ", text)


def main() -> None:
    place, url = Path(sys.argv[1]), os.environ.get("SPAK_WEB_DATABASE_URL", "")
    os.environ.update(SPAK_WEB_DATA=str(place), DJANGO_SETTINGS_MODULE="spakweb.settings")
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    fill()
    if url:
        (HERE / "postgresql.sql").write_text(dump_postgresql(url))
    else:
        (HERE / "sqlite.sql").write_text(dump_sqlite(place / "spak.sqlite3"))


if __name__ == "__main__":
    main()
