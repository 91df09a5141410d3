"""The platform's settings for tests: data in a temporary folder, quick password hashes, all else as it is.

SPAK_WEB_DATABASE_URL in the environment runs the same tests on another database.
"""

import os
import tempfile
from pathlib import Path

DATA = Path(tempfile.mkdtemp(prefix="spak-web-"))
os.environ["SPAK_WEB_DATA"] = str(DATA)
os.environ.setdefault("SPAK_WEB_SECRET_KEY", "only-for-tests-" * 4)

from spakweb.settings import *  # noqa: E402, F403
from spakweb.settings import DATABASES  # noqa: E402

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, because a server in a thread opens a connection of its own.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA / "test.sqlite3")}
    # It need not outlive the machine.
    DATABASES["default"]["OPTIONS"]["init_command"] += "PRAGMA synchronous=OFF;"
