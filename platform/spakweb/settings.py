"""Every setting of the platform, read top to bottom; docs/settings.md has the table for people.

Takes the variables SPAK_WEB_* of the environment; what is not set has a default with which one person on one
machine can work at once (SQLite, a secret key made on first use, loopback only). SPAK_WEB_PRODUCTION=true
turns the defaults round: nothing is guessed that should be told, and cookies and addresses are for HTTPS.
"""

from __future__ import annotations

import os
import re
import secrets
import ssl
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from spak.lang.limits import MAX_BYTES
from spak.ledger.private import keep_folder
from spakweb.ground.database import restoring
from spakweb.ground.database.settings import LIMITS, Limits, database
from spakweb.ground.environment import (
    BadSetting,
    checkpoints,
    flag,
    folders,
    number,
    operators_law,
    origin,
    packages,
    reach,
    text,
    words,
)
from spakweb.ground.logs import handlers

BASE_DIR = Path(__file__).resolve().parents[2]

# ---- where, and in which mode

PRODUCTION = flag("SPAK_WEB_PRODUCTION", False)
DEMO = flag("SPAK_WEB_DEMO", False)
"""The sign-in form is filled in for the demo's user; on one's own machine only."""
DATA_DIR = Path(text("SPAK_WEB_DATA", str(BASE_DIR / ".spak" / "platform")))
DEBUG = False

if PRODUCTION and DEMO:
    raise BadSetting("SPAK_WEB_DEMO", "is true in production", "false", "unset SPAK_WEB_DEMO")


def secret_key() -> str:
    """The key from the environment; on one's own machine one that is made once and kept beside the data."""
    key = text("SPAK_WEB_SECRET_KEY")
    if key and (len(key) < 50 or len(set(key)) < 5) and PRODUCTION:
        raise BadSetting("SPAK_WEB_SECRET_KEY", "is too weak", "50 random characters or more", _NEW_KEY)
    if key:
        return key
    if PRODUCTION:
        raise BadSetting("SPAK_WEB_SECRET_KEY", "is not set", "50 random characters or more", _NEW_KEY)
    file = DATA_DIR / "secret_key"
    try:
        keep_folder(DATA_DIR)
        if restoring.is_unfinished(DATA_DIR) and not file.exists():
            return secrets.token_urlsafe(50)  # for this command alone: the restore brings the key
        if not file.exists():
            aside = file.with_name(f".secret_key.{secrets.token_hex(4)}")
            aside.touch(mode=0o600)
            aside.write_text(secrets.token_urlsafe(50))
            aside.rename(file)
        return file.read_text()
    except OSError as error:
        raise BadSetting(
            "SPAK_WEB_DATA", f"is {str(DATA_DIR)!r}: {error.strerror}", "a folder to write in", "name another"
        ) from error


_NEW_KEY = 'python -c "import secrets; print(secrets.token_urlsafe(50))" makes one; keep it secret'

SECRET_KEY = secret_key()

# ---- hosts, addresses, proxies

PORT = number("SPAK_WEB_PORT", 8000, 1, 65535)
HOST = text("SPAK_WEB_HOST", "127.0.0.1")
ALLOWED_HOSTS = words("SPAK_WEB_HOSTS", "" if PRODUCTION else "127.0.0.1,localhost,[::1]")
if not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS:
    raise BadSetting(
        "SPAK_WEB_HOSTS", "names no host" if not ALLOWED_HOSTS else "lets any host in",
        "the names that people type, with commas between", "set SPAK_WEB_HOSTS=spak.example.org",
    )  # fmt: skip
CSRF_TRUSTED_ORIGINS = words(
    "SPAK_WEB_ORIGINS", ",".join(f"https://{h}" for h in ALLOWED_HOSTS if PRODUCTION)
)
for _origin in CSRF_TRUSTED_ORIGINS:
    if not _origin.startswith(("https://", "http://")):
        raise BadSetting(
            "SPAK_WEB_ORIGINS", f"has {_origin!r}", "addresses with https://", f"write https://{_origin}"
        )
if flag("SPAK_WEB_BEHIND_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
BEHIND_PROXY = "SECURE_PROXY_SSL_HEADER" in globals()

# ---- what it is made of

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "django_htmx",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "spakweb.ground",
    "spakweb.work",
    "spakweb.face",
    "spakweb.ground.teams",
    "spakweb.store.jobs",
    "spakweb.store.specs",
    "spakweb.store.reviews",
    "spakweb.store.suites",
    "spakweb.store.campaigns",
    "spakweb.store.runs",
    "spakweb.store.sources",
    "spakweb.store.fleet",
    "spakweb.store.hooks",
    "spakweb.store.incoming",
    "spakweb.store.folders",
    "spakweb.store.triggers",
    "spakweb.ground.oidc",
    "spakweb.store.telemetry",
    "spakweb.store.schedules",
    "spakweb.ground.audit",
    "rest_framework",
    "drf_spectacular",
    "spakweb.store.api",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "spakweb.ground.web.csp.ContentSecurityPolicy",
    "spakweb.ground.web.files.Files",
    "spakweb.ground.web.representations.Representations",
    "spakweb.work.teams.bearer.Bearer",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "spakweb.ground.audit.middleware.Origin",
    "spakweb.ground.access.SignedIn",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "spakweb.ground.unsafe_text.Seen",
    "spakweb.ground.web.error_pages.RefusedToAnswer",
]

ROOT_URLCONF = "spakweb.urls"
ASGI_APPLICATION = "spakweb.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "spakweb.face.home.context.shell",
            ],
            "builtins": ["spakweb.face.home.template_tags"],
            "libraries": {
                "campaigns": "spakweb.face.campaigns.template_tags",
                "folders": "spakweb.face.folders.template_tags",
                "reviews": "spakweb.face.reviews.template_tags",
                "runs": "spakweb.face.runs.template_tags",
                "suites": "spakweb.face.suites.template_tags",
            },
        },
    },
]

# ---- the API

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_SCHEMA_CLASS": "spakweb.face.api.schema.Schema",
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "SPAK",
    "DESCRIPTION": "Start runs, wait for them, report, and gate patches. docs/ci.md has a script to paste.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": ["spakweb.face.api.schema.problems"],
}

# ---- stores

LONG_COMMANDS = frozenset({"migrate", "rebuild", "up"})
"""Commands of `manage.py` whose statements and transactions may take any time; `up` brings the tables up to
date first, and the parts that it starts have the limits."""
DATABASE_LIMITS = Limits(
    lock_s=number("SPAK_WEB_DATABASE_LOCK_S", LIMITS.lock_s, 0, 3600),
    statement_s=number("SPAK_WEB_DATABASE_STATEMENT_S", LIMITS.statement_s, 0, 86400),
    idle_s=number("SPAK_WEB_DATABASE_IDLE_S", LIMITS.idle_s, 0, 3600),
    silent_s=number("SPAK_WEB_DATABASE_SILENT_S", LIMITS.silent_s, 0, 7200),
)
if LONG_COMMANDS.intersection(sys.argv[1:2]):
    DATABASE_LIMITS = replace(DATABASE_LIMITS, statement_s=0, idle_s=0)
DATABASES = {"default": database(text("SPAK_WEB_DATABASE_URL"), DATA_DIR, DATABASE_LIMITS)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = text("SPAK_WEB_REDIS_URL")
if REDIS_URL and not REDIS_URL.startswith(("redis://", "rediss://")):
    raise BadSetting(
        "SPAK_WEB_REDIS_URL", "is not an address of Redis", "redis://host:6379/0", "fix it, or unset it"
    )
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
if REDIS_URL:  # without socket_timeout=None redis-py 8 ends an idle connection after five seconds
    CHANNEL_LAYERS["default"] = {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None}]},
    }

CACHES: dict[str, dict[str, Any]] = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
if REDIS_URL:  # how often someone tried to sign in is counted over all processes
    CACHES["default"] = {
        "BACKEND": "spakweb.ground.cache.Shared",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_connect_timeout": 2, "socket_timeout": 2},
    }

# ---- workers

SOURCE_S = number("SPAK_WEB_SOURCE_S", 120, 1, 3600)
"""How long a repository may take, from the first question to the last file."""
VISIBLE_S = 3600 + 2 * SOURCE_S
"""Redis hands a message on that a worker has had for so long: longer than any job is held."""
QUEUE_DIR = DATA_DIR / "queue"
CELERY_BROKER_URL = REDIS_URL or "spakfiles://localhost/"
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = (
    {"visibility_timeout": VISIBLE_S, "socket_timeout": None, "socket_connect_timeout": 5, "max_retries": 0}
    if REDIS_URL  # max_retries: else who starts a run while Redis is away waits six seconds, for nothing
    else {"folder": str(QUEUE_DIR), "polling_interval": 0.02}
)
if REDIS_URL.startswith("rediss://"):  # kombu by itself would believe any certificate
    CELERY_BROKER_USE_SSL = {"ssl_cert_reqs": ssl.CERT_REQUIRED}
CELERY_IMPORTS = (
    "spakweb.work.worker.tasks",
    "spakweb.work.jobs.tasks",
    "spakweb.work.schedules.jobs",
    "spakweb.work.suites.jobs",
)
"""Where a worker finds its tasks, and what follows a sweep."""
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
JOBS = (
    "spakweb.work.hooks.deliver.KIND",
    "spakweb.work.telemetry.jobs.KIND",
    "spakweb.work.suites.judging.VET",
    "spakweb.work.suites.judging.JUDGE",
    "spakweb.work.worker.problem_checks.KIND",
    "spakweb.work.folders.steps.KIND",
    "spakweb.work.sources.branches.KIND",
    "spakweb.work.sources.reading.KIND",
    "spakweb.work.sources.run_reading.KIND",
    "spakweb.work.reviews.checks.KIND",
    "spakweb.work.reviews.queue_steps.KIND",
    "spakweb.work.campaigns.steps.KIND",
    "spakweb.work.runs.checkpoints.KIND",
)
"""The kinds of jobs that workers do besides runs (spakweb.work.jobs.kinds)."""
JOB_QUEUE = text("SPAK_WEB_JOB_QUEUE", "default")
"""The queue of all jobs: workers that serve it do them."""
if not re.fullmatch(r"[\w.:-]{1,60}", JOB_QUEUE):
    raise BadSetting("SPAK_WEB_JOB_QUEUE", "is not a name", "letters, digits, _ . : -", "name one queue")
WORKER_THREADS = number("SPAK_WEB_WORKER_THREADS", 4, 1, 64)
WORKER_QUEUES = words("SPAK_WEB_WORKER_QUEUES", "default,gpu")
RUNNER_NAME = text("SPAK_WEB_RUNNER", os.uname().nodename)
RUNNER_TOKEN = text("SPAK_WEB_RUNNER_TOKEN")
TEAM_RUNS = number("SPAK_WEB_TEAM_RUNS", 16, 1, 10000)
"""How many runs of one team are advanced at the same time."""
LAW = operators_law("SPAK_WEB_LAW")
"""The operator's law: the text of each file by its name."""
PACKAGES = packages("SPAK_WEB_PACKAGES")
"""Installed packages whose tools, validators, backends and predicates runs may use."""
SECRETS_DIR = text("SPAK_WEB_SECRETS")
"""On a worker's host: a folder for each team, a file for each secret that its runs may name."""
WEBHOOK_REACH = reach("SPAK_WEB_WEBHOOK_REACH")
"""The kinds of addresses that webhooks may be sent to."""
OIDC_REACH = reach("SPAK_WEB_OIDC_REACH")
"""The kinds of addresses that the issuers of CI's id tokens may be at."""
SOURCE_REACH = reach("SPAK_WEB_SOURCE_REACH")
"""The kinds of addresses that repositories of teams may be at."""
SOURCE_FOLDERS = folders("SPAK_WEB_SOURCE_FOLDERS")
"""Folders of the workers' disk whose repositories teams may name."""
CELERY_BEAT_SCHEDULE = {
    # workers that come back after a night do not find a night's sweeps
    "sweep": {"task": "runs.sweep", "schedule": 5.0, "options": {"expires": 60.0}}
}

# ---- people

AUTH_USER_MODEL = "teams.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGOUT_REDIRECT_URL = "/account/login/"
ACCOUNT_ADAPTER = "spakweb.work.teams.adapter.AccountAdapter"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_RATE_LIMITS = {
    "login_failed": "10/m/ip,5/300s/key",  # the key is a name from one address: work/teams/adapter.py
    "login_failed_anywhere": "100/h/key",
}
ACCOUNT_SESSION_REMEMBER = None  # as the person ticks
ALLAUTH_TRUSTED_PROXY_COUNT = int(BEHIND_PROXY)  # else all people behind it share the limits of sign-ins
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True  # nobody must have an address; where letters go nowhere none is proven
MFA_TOTP_ISSUER = "SPAK"
MFA_FORMS = {
    "authenticate": "spakweb.work.teams.codes.Authenticate",
    "reauthenticate": "spakweb.work.teams.codes.Reauthenticate",
    "activate_totp": "spakweb.work.teams.codes.Activate",
}
MFA_TOTP_TOLERANCE = 1  # a phone's clock may be half a minute off
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not PRODUCTION  # browsers allow passkeys on http://localhost
OPEN_SIGNUP = flag("SPAK_WEB_OPEN_SIGNUP", False)
INVITATION_DAYS = number("SPAK_WEB_INVITATION_DAYS", 7, 1, 90)

OIDC_ISSUER = text("SPAK_WEB_OIDC_ISSUER")
OIDC_SIGN_IN = text("SPAK_WEB_OIDC_SIGN_IN", OIDC_ISSUER)
"""Where the issuer asks people to sign in: forms may lead there."""
SOCIALACCOUNT_ONLY = False
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if OIDC_ISSUER:
    if not OIDC_ISSUER.startswith("https://") and PRODUCTION:
        raise BadSetting("SPAK_WEB_OIDC_ISSUER", "is not https", "https://issuer", "use the https address")
    for _name in ("SPAK_WEB_OIDC_CLIENT_ID", "SPAK_WEB_OIDC_CLIENT_SECRET"):
        if not text(_name):
            raise BadSetting(
                _name, "is not set", "what the issuer gave for this client", "set it, or unset the issuer"
            )
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "oidc",
                "name": text("SPAK_WEB_OIDC_NAME", "Single sign-on"),
                "client_id": text("SPAK_WEB_OIDC_CLIENT_ID"),
                "secret": text("SPAK_WEB_OIDC_CLIENT_SECRET"),
                "settings": {"server_url": OIDC_ISSUER},
            }
        ],
    }

# ---- letters

SMTP_HOST = text("SPAK_WEB_SMTP_HOST")
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if SMTP_HOST else 'console'}.EmailBackend"
EMAIL_HOST = SMTP_HOST or "localhost"
EMAIL_PORT = number("SPAK_WEB_SMTP_PORT", 587, 1, 65535)
EMAIL_HOST_USER = text("SPAK_WEB_SMTP_USER")
EMAIL_HOST_PASSWORD = text("SPAK_WEB_SMTP_PASSWORD")
EMAIL_USE_TLS = bool(SMTP_HOST)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = text("SPAK_WEB_MAIL_FROM", "spak@localhost")
SENDS_MAIL = bool(SMTP_HOST)

# ---- files and pages

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "spakweb.ground.web.bundles.Bundles",
]
STATIC_ROOT = DATA_DIR / "static"
STORAGE = text("SPAK_WEB_STORAGE", "files")
"""Where blobs are: `files` of the data folder, which all parts share, or rows of the `database`."""
_STORES = {
    "files": "django.core.files.storage.FileSystemStorage",
    "database": "spakweb.store.ledger.storage.DatabaseStorage",
}
if STORAGE not in _STORES:
    raise BadSetting("SPAK_WEB_STORAGE", f"is {STORAGE!r}", "files or database", "fix it, or unset it")
STORAGES = {
    "default": {"BACKEND": _STORES[STORAGE]},
    "staticfiles": {"BACKEND": f"spakweb.ground.web.files.{'HashedFiles' if PRODUCTION else 'PlainFiles'}"},
}
WHITENOISE_USE_FINDERS = not PRODUCTION
WHITENOISE_AUTOREFRESH = not PRODUCTION
MEDIA_ROOT = DATA_DIR / "media"

CHECKPOINTS = checkpoints("SPAK_WEB_CHECKPOINT_LOG", "SPAK_WEB_CHECKPOINT_TO", "SPAK_WEB_CHECKPOINT_WITNESS")
CHECKPOINT_EVERY_S = number("SPAK_WEB_CHECKPOINT_EVERY_S", 3600, 10, 86400)
CHECKPOINT_TOKEN = text("SPAK_WEB_CHECKPOINT_TOKEN")
KEEP_RUNS_DAYS = number("SPAK_WEB_KEEP_RUNS_DAYS", 0, 0, 36500)
"""Days after which runs that ended are deleted, in teams that say nothing of it; 0: never."""

RUN_FILES = number("SPAK_WEB_RUN_FILES", 10_000, 1, 50_000)
"""Files and folders that a person may bring for a run."""
RUN_FILES_BYTES = (1 << 20) * number("SPAK_WEB_RUN_FILES_MB", 256, 1, 4096)
"""Their size, packed and unpacked."""
UPLOAD_BYTES = 1024 * number("SPAK_WEB_UPLOAD_KB", MAX_BYTES // 1024, 16, MAX_BYTES // 1024)
"""The largest text that a person may bring: at most what the language allows."""
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * UPLOAD_BYTES
FILE_UPLOAD_MAX_MEMORY_SIZE = UPLOAD_BYTES
DATA_UPLOAD_MAX_NUMBER_FIELDS = 100
DATA_UPLOAD_MAX_NUMBER_FILES = 100
"""Of one form, where no script packs them into one. What is large goes to disk as it comes."""
REQUEST_BYTES = max(RUN_FILES_BYTES, 64 << 20) + (1 << 20)
"""The longest request that is read at all (spakweb.ground.web.bodies)."""

LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

# ---- what browsers may do

SECURE_CSP: dict[str, list[str]] = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    "connect-src": ["'self'"],
    "img-src": ["'self'", "data:"],
    "font-src": ["'self'"],
    "form-action": ["'self'", *sorted({origin(url) for url in (OIDC_ISSUER, OIDC_SIGN_IN) if url})],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
    "manifest-src": ["'self'"],
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PRODUCTION
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "spakweb.ground.web.error_pages.csrf"
SECURE_SSL_REDIRECT = PRODUCTION
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = number("SPAK_WEB_HSTS_SECONDS", 31536000 if PRODUCTION else 0, 0, 126144000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = PRODUCTION

# ---- what is said about what happens

LOG = text("SPAK_WEB_LOG", "plain")
if LOG not in ("plain", "json"):
    raise BadSetting(
        "SPAK_WEB_LOG", f"is {LOG[:40]!r}", "plain or json", "set SPAK_WEB_LOG=json, or unset it"
    )
METRICS_TOKEN = text("SPAK_WEB_METRICS_TOKEN")
if METRICS_TOKEN and len(METRICS_TOKEN) < 16:
    raise BadSetting("SPAK_WEB_METRICS_TOKEN", "is too short", "16 signs or more", _NEW_KEY)
OTLP = text("SPAK_WEB_OTLP_ENDPOINT")
"""Where spans of runs are sent; empty: nowhere."""
if OTLP and urlsplit(OTLP).scheme not in ("http", "https"):
    raise BadSetting(
        "SPAK_WEB_OTLP_ENDPOINT", "is not an address", "http://host:4318/v1/traces", "write the whole address"
    )
OTLP_HEADERS = text("SPAK_WEB_OTLP_HEADERS")
"""`name=value` with commas between, such as a key of the collector's."""

LOGGING = handlers.configuration(LOG)
