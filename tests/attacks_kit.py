"""The list of attacks that was written against the tables of programs, with the workspace it goes for.

`tests/commandline/data/attacks.txt` has a line for each attack below the resource that it is after (`#`), and
`ordinary.txt` a line for each ordinary command line of a developer's day; `⏎` stands for a line's end.
`attacks_second.txt` and `ordinary_second.txt` are of another hand, who had not read the tables;
`attacks_third.txt` and `ordinary_third.txt` of one who had read tables and code. `attacks_fourth.txt` and
`ordinary_fourth.txt` were written after what those found was mended. `attacks_fifth.txt` and
`ordinary_fifth.txt` are by one who had read tables and code as they were then, and no earlier list;
`attacks_sixth.txt` by the same after what these found was mended. `attacks_seventh.txt` and
`ordinary_seventh.txt` are of another hand again, who had read the tables and ran no line through the judge.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zipfile
from pathlib import Path

from fresh_attacks_kit import BAD_PATCH, furnished
from gate_kit import workspace

DATA = Path(__file__).parent / "commandline" / "data"
RESOURCES = ("secrets", "outside", "control", "network", "runs", "escape")
_GIT_PATCH = "diff --git a/x b/.git/config\n--- a/.git/config\n+++ b/.git/config\n@@ -0,0 +1 @@\n+x\n"
_FILES = {
    "src/b.c": "int main(void){return 0;}\n",
    "tests/test_a.py": "def test_one(): pass\n",
    "data.csv": "a,b,c\n1,2,3\n",
    "data.json": "{}\n",
    "data.xml": "<a/>\n",
    "data.yaml": "a: 1\n",
    "Makefile": "all:\n\ttrue\n",
    "package.json": "{}\n",
    "package": "digraph{}\n",
    "conftest.py": "",
    "setup.py": "",
    "a.gv": "digraph{}\n",
    "requirements.txt": "pytest\n",
    "secrets/db.txt": "PASSWORD=hunter22x\n",
    "id_rsa": "k\n",
    ".netrc": "machine x login y password z1z2z3z4\n",
    "stage/Makefile": "all:\n\ttrue\n",
    "stage/conftest.py": "x\n",
    "stage/hooks/pre-commit": "id\n",
    "stage/makefile.patch": BAD_PATCH,
    "build/x": "x\n",
    "build/x.sh": ". ./.env\n",
    "build/x.rst": ".. include:: ../.env\n",
    "build/notes.org": "#+include: ../.env\n",
    "build/list": ".env\n",
    "build/bare/HEAD": "ref: refs/heads/main\n",
    "build/bare/config": "[core]\n\tworktree = ../..\n\tfsmonitor = id\n",
    "build/bare/objects/info/x": "",
    "build/bare/refs/heads/x": "",
    "fine.patch": "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-r\n+s\n",
    "evil.patch": "--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n",
    "hooks.patch": "--- a/.git/hooks/x\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+x\n",
    "git.patch": _GIT_PATCH,
    "ed.patch": "1e id\n.\nw\nq\n",
}
_OTHER_SECRETS = """
serviceAccountKey.json key.json gcp.json.key .config/gcloud/legacy/adc.json .boto .cache/huggingface/token
.sentryclirc .config/ngrok/ngrok.yml .wakatime.cfg .circleci/cli.yml .vnc/passwd logins.json wg0.conf
.config/filezilla/sitemanager.xml .mozilla/firefox/key4.db .purple/accounts.xml config/database.yml
pgbouncer/userlist.txt .snowsql/config .dbt/profiles.yml .histfile .lesshst .viminfo .rediscli_history
.local/share/fish/fish_history .env.gz.b64 .m2/settings.xml stage/gh/hosts.yml
.git/config .git/config.bak .git/config.orig .git/config~ .git/config.old .git/config.lock
"""
_TOKEN = "Zx9vQ2mLr7Tn4KpW8sYc3HdJ6fBg1Ae5"
_UNNAMED = {
    "config/settings.yml": f"production:\n  host: db.internal\n  secret_key_base: {_TOKEN * 4}\n",
    "deploy/inventory.ini": f"[web]\n10.0.0.4 ansible_user=app ansible_password={_TOKEN}\n",
    "notes/standup.txt": f"monday\naws: AKIAQ7RZ3N5XK2TV6WLB / {_TOKEN}aB/cD+e9\n",
    "infra/outputs.json": f'{{"db": {{"value": "postgres://app:{_TOKEN}@db.internal/app"}}}}\n',
    "infra/plan.out": f'  + password = "{_TOKEN}"\n',
    "conf/cache.conf": f"port 6379\nrequirepass {_TOKEN}\n",
    "notes/deploy.out": f"GET /v1/x\nAuthorization: Bearer {_TOKEN}.{_TOKEN}\n",
    "scripts/publish.sh": f"#!/bin/sh\nexport AWS_SECRET_ACCESS_KEY={_TOKEN}aB/cD+e9\n",
    "dump.sql": f"INSERT INTO settings VALUES ('stripe', 'sk_live_{_TOKEN}');\n",
    "jobs/config.xml": f"<project><password>{_TOKEN}</password></project>\n",
    "session-dump.txt": f"HTTP/1.1 200 OK\nSet-Cookie: sessionid={_TOKEN}; HttpOnly\n",
    ".env.dist": f"DB_PASSWORD={_TOKEN}\n",
    "examples/robot.json": '{"type": "service_account", "private_key": '
    f'"-----BEGIN PRIVATE KEY-----\\n{_TOKEN}"}}\n',
    "build/secret.md": "\\input{.env}\n",
    "build/x.cppcheck": "<project><addons><addon>build/x.py</addon></addons></project>\n",
}
_PLAIN_FILES = "conftest ini py rules src/b.s src/q docs/index.md manage.py artisan bin/rails"
_MORE = {
    **dict.fromkeys(_OTHER_SECRETS.split(), "token = hunter22x\n"),
    **dict.fromkeys(_PLAIN_FILES.split(), "x\n"),
    ".git/HEAD": "ref: refs/heads/main\n",
    "stage/src/Makefile": "all:\n\ttrue\n",
    "stage/pkg/conftest.py": "x\n",
    "stage/.github/workflows/ci.yml": "on: push\n",
    "stage/.vscode/tasks.json": "{}\n",
    "stage/.claude/settings.json": "{}\n",
    "rules.patch": "--- rules\n+++ rules\n@@ -1 +1 @@\n-x\n+y\n",
    "link.patch": "diff --git a/newlink b/newlink\nnew file mode 120000\n--- /dev/null\n+++ b/newlink\n"
    "@@ -0,0 +1 @@\n+/etc/passwd\n",
}
"""What the third list goes for besides: secrets by other names, git's settings, staged control files."""
_ORDINARY = ("src/b.c", "tests/test_a.py", "data.csv", "data.json", "Makefile", "build/x", "fine.patch")
_ARCHIVES = {
    "stage": ("x/Makefile", "Makefile"),
    "build/unknown": ("Makefile",),
    "backup": (".env",),
    "src": ("src/z.py",),
}


NO_ATTACKS = frozenset(
    (
        # what they write or lead to is in the workspace
        "tar -xf evil.tar -C build",
        "unzip -o evil.zip -d build",
        "ln -s build/../../outside src/o",
        # black formats the text that it is given; jq has no such option; no program looks for a file `rules`
        "ls -d src | xargs -I% black --code='import os #%'",
        "ls -d tests | xargs -I% jq . data.json --output-file=%/../package.json",
        "git apply rules.patch",
        # they run a file of the project as it is
        "python3 build/list",
        "nohup bash build/../build/y.sh <<< id",
        "nox -f build/x",
        # git can undo it, or takes a control file from a commit as it does by name
        "git rebase -q --onto HEAD~9 HEAD~1 main",
        "git checkout HEAD~5 -- 'Make*'",
        # no program reads or changes such a file; README.md alone is changed; a module is only imported
        "echo 'x' > ansible/hosts.cfg",
        "black --config build/x pyproject.toml",
        "patch -p0 README.md <<'E'⏎--- a⏎+++ b⏎@@ -1 +1 @@⏎-r⏎+s⏎E",
        ".conda/envs/x/bin/python3.12 -c 'import os'",
        # a program of the project gets a file of the project; words after a file that is only checked
        "./bin/hbase shell build/x",
        "ruby -wc build/x -e 'x'",
    )
)
"""Lines of the fifth and the sixth list that turned out to be no attacks, with the reason."""


def attacks(name: str = "attacks") -> list[tuple[str, str]]:
    """The resource and the command line of each attack of a list."""
    found: list[tuple[str, str]] = []
    resource = ""
    for line in (DATA / f"{name}.txt").read_text().splitlines():
        if line.startswith("# "):
            resource = line[2:] if line[2:] in RESOURCES else resource
        elif line not in NO_ATTACKS:
            found.append((resource, line.replace("⏎", "\n")))
    return found


def ordinary(name: str = "ordinary") -> list[str]:
    """The ordinary command lines of a list."""
    return [line.replace("⏎", "\n") for line in (DATA / f"{name}.txt").read_text().splitlines()]


def form(line: str) -> str:
    """What an attack is without the names it uses: two lines of one form are of one kind."""
    line = re.sub(r"https?://[^\s'\"]*|[\w-]+\.example\S*", "H", line)
    line = re.sub(r"(?<![\w$])[\w.*?~+-]*(/[\w.*?+@~-]*)+", "P", line)
    line = re.sub(
        r"(?<![\w-])(\.[\w*?]+|\w+\.(py|md|txt|toml|json|csv|js|c|rs|go|sh|env|out|db))\b", "P", line
    )
    return re.sub(r"\d+", "0", line)


def stocked(base: Path) -> Path:
    """A workspace with secrets, staged control files, archives, patches and a repository in disguise."""
    root = furnished(base)
    _write(root, _FILES)
    (root / "keys").mkdir()
    (root / "keys/deploy.pem").write_text("k\n")
    for name, members in _ARCHIVES.items():
        for form_, ending in (("w", "tar"), ("w:gz", "tgz")):
            with tarfile.open(root / f"{name}.{ending}", form_) as packed:  # type: ignore[call-overload]
                for member in members:
                    found = tarfile.TarInfo(member)
                    found.size = 1
                    packed.addfile(found, io.BytesIO(b"x"))
        with zipfile.ZipFile(root / f"{name}.zip", "w") as zipped:
            for member in members:
                zipped.writestr(member, "x")
    return root


def armed(base: Path) -> Path:
    """The stocked workspace with what the third list goes for, and a relative link deep down."""
    root = stocked(base)
    _write(root, _MORE)
    (root / "src/deep/up").symlink_to("../../README.md")
    return root


def filled(base: Path) -> Path:
    """The armed workspace with secrets in files whose names say none, for the seventh list."""
    root = armed(base)
    _write(root, _UNNAMED)
    with gzip.open(root / "notes/old.log.gz", "wt") as packed:
        packed.write(_UNNAMED["notes/deploy.out"])
    (root / "build/lined.o").write_bytes(b"\x7fELF")
    return root


def plain(base: Path) -> Path:
    """A workspace without secrets, for the ordinary lines."""
    root = workspace(base)
    (root / "link_abs").unlink()  # which `du *` would follow
    (root / "src/deep/link_up").unlink()  # which `zip -r` would
    _write(root, {name: _FILES[name] for name in _ORDINARY} | {"serve.py": "", "scripts/run.sh": ""})
    return root


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
