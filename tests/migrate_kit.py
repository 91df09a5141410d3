"""The functions of the guest that tries migrations, in this process; and a small Django project."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

from cli_kit import ROOT
from spak.proposers.migrate import GUEST, SCHEMAS

MODELS = """\
from django.db import models


class Item(models.Model):
    name = models.CharField(max_length=20)
    size = models.IntegerField(null=True)
"""
_MANAGE = """\
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_.settings")
from django.core.management import execute_from_command_line

execute_from_command_line(sys.argv)
"""
_SETTINGS = """\
from pathlib import Path

INSTALLED_APPS = ["shop"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
BASE = Path(__file__).parent.parent
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE / "db.sqlite3"}}
"""


def guest() -> dict[str, Any]:
    """The names of migrate_guest.py."""
    names = runpy.run_path(str(ROOT / "sandbox/guest" / GUEST))
    exec((ROOT / SCHEMAS).read_text(), names["schemas"].__dict__)
    return names


def project(folder: Path) -> Path:
    """A Django project with one app, its first migration, and a database that has it."""
    files = {
        "manage.py": _MANAGE, "site_/__init__.py": "", "site_/settings.py": _SETTINGS, "shop/__init__.py": "",
        "shop/models.py": MODELS, "shop/migrations/__init__.py": "",
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    for words in (("makemigrations", "--no-header"), ("migrate",)):
        subprocess.run([sys.executable, "-B", "manage.py", *words, "-v0"], cwd=folder, env=env, check=True)
    return folder
