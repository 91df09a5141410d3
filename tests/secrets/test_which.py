"""Which paths are of secrets: names, copies as programs and people call them, and folders; quickly."""

from __future__ import annotations

import re
import time

import pytest

from spak.secrets import which
from spak.secrets.lists import LISTS

MOST = 255
"""Characters of a file's name."""
LINES = sorted(
    {
        line
        for key in ("names", "contents")
        for text in LISTS.sections[key].values()
        for line in str(text).splitlines()
        if re.search(r"[*+]", line)
    }
)


@pytest.mark.parametrize(
    "path",
    ["secrets/key", "auth.json", ".dev.vars", "a/credentials/db", "db-passwords.txt", "tls.key",
     "prod.tfvars", "my-secrets.yaml", ".api_token", "deploy_key"],
)  # fmt: skip
def test_names_of_secrets_follow_rules(path: str) -> None:
    assert which.secret(path)


SECRET_NAMES = (
    "aws.credentials", "secrets.dec.yaml", "kubeconfig.yaml", "htpasswd", ".vault_pass", "sftp.json",
    ".ftpconfig", "local.settings.json", "rootkey.csv", "secret_key.txt", "gcp-key.json", "env.production",
    "a.tfvars.json", "github_token", "prod.env", "config.env", ".envrc", ".env-prod", ".env_old",
    ".env.local", ".ENV", "Prod.Env", "my app.env", "id_rsa", "id_ecdsa", "id_ed25519_sk",
    "id_ed25519.work", "id_rsa_github", "deploy_ed25519", "ssh_host_rsa_key", "server.pem", "store.p12",
    "store.pfx", "store.jks", "store.keystore", "vault.kdbx", "vault.kdb", "signer.pk8", "signer.pvk",
    "store.pkcs12", "login.keychain-db", ".netrc", ".npmrc", ".pypirc", ".pgpass", "pgpass.conf",
    ".authinfo", ".git-credentials", ".terraformrc", ".my.cnf", ".mylogin.cnf", ".dockerconfigjson",
    "rclone.conf", "credentials", "credentials.json", "credentials.db",
    "client_secret_12.apps.example.json", "token.json", "shop-firebase-adminsdk-1x.json", "dev.kubeconfig",
    "wallet.dat", ".bash_history", ".psql_history", "kaggle.json",
    ".env1", ".env2", "env-prod", "env_staging", "tokens.json", "api_tokens.json", "accessTokens.json",
    "oauth_token.json", "secrets.yaml.j2", "secrets.yml.tpl", "app.env.j2", "db-credentials.json.erb",
    "secrets.toml.jinja2", "terraform.tfvars", "prod.auto.tfvars", "plan.tfplan", "tfplan", "kube-config",
    "kubeconfig", ".s3cfg", ".curlrc", ".wgetrc", ".lftprc", "passwd.txt", "pass.csv", "cookies.txt",
    "settings-security.xml",
)  # fmt: skip
COPIES = (
    "{}~", "{}.bak", "{}.bak2", "{}.BAK", "{}.old", "{}.orig", "{}.save", "{}.swp", "{}.tmp", "{}.1",
    "{}.2026-11-24", "{}.bak.old~", "{}.gz", "{}.zip", "{}.dpkg-old", "{}-backup", "{}_old", "{} (1)",
    "{} - Copy", "{} copy", "#{}#", ".#{}", ".{}.swp", "{}.~3~", "Copy of {}",
)  # fmt: skip
"""How programs and people call a second copy of a file."""


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_copy_of_a_file_of_secrets_is_one(name: str) -> None:
    for path in (name, *(copy.format(name) for copy in COPIES)):
        assert which.secret(path) and which.secret(f"a/{path}") and which.secret_name(path), path


@pytest.mark.parametrize(
    "path",
    ["env.bak", "env~", "env.old", "env.1", "env_backup", "#env#", "config/env.save", ".docker/config.json",
     ".m2/settings.xml", "a/.m2/settings.xml.bak", ".m2/Settings.xml~", ".gradle/gradle.properties",
     ".nuget/NuGet.Config", ".config/gh/hosts.yml", ".config/pip/pip.conf", ".pip/pip.conf",
     ".subversion/auth/svn.simple/0", ".kube/config", ".config/gcloud/access_tokens.db",
     ".config/sops/age/keys.txt", ".config/doctl/config.yaml", ".bundle/config", "a/.oci/config.bak",
     "config/parameters.yml", "creds.json", "config/api_keys.json", "passphrase.txt", ".mbsyncrc",
     "msal_token_cache.bin", ".node_repl_history"],
)  # fmt: skip
def test_what_is_secret_only_as_a_copy_or_where_it_lies(path: str) -> None:
    assert which.secret(path)


@pytest.mark.parametrize("folder", [".ssh.bak", ".aws~", ".gnupg.old", "app/.kube-backup"])
def test_a_copy_of_a_folder_of_secrets_is_one(folder: str) -> None:
    for name in ("config", "notes.txt"):
        assert which.secret(f"{folder}/{name}")


@pytest.mark.parametrize(
    "path",
    [
        "secrets.lock", "secret.png", "credentials.svg", "env.yml", "local.settings.md", "tokens.txt",
        "sa-keys.md", "environment.py", "env.md", "env.py", "src/env.ts", ".env.example", ".env.sample",
        ".env.template", ".env.dist", ".env.local.example", ".env.example.local", ".env.example~",
        ".env.sample.bak", "example.env", "sample.env", "id_rsa.pub", "id_ed25519.pub", "id_rsa.pub.bak",
        "id_rsa-cert.pub", "id_rsa_test.go", "ssh_host_rsa_key.pub", "deploy_ed25519.pub",
        "environment.yml", "env", "env.mk", "venv", "vite-env.d.ts", "env.d.ts", ".envelope", "envoy.yaml",
        "tokenizer.json", "package.json", "npmrc.md", "identity.py", "README.md.bak",
        "main.py~", "main.c.orig", "notes.old", ".gitignore", "secrets.py.bak", "docs/secrets.md~",
        "credentials.ts.orig", "history.txt", "config.json", "key.py", "keys.js", "monkey.txt",
        "wallet.py", "pem.py", ".npmignore", ".nvmrc", "requirements.txt.bak", "x.env.md",
        "tokens.py", "tokens.ts", "tokens.css", "token.go", "test_tokens.json", "design-tokens.json",
        "design.tokens.json", "special_tokens_map.json", "added_tokens.json", "tokenizer_config.json",
        "tokenize.json", "token_test.go", "secrets.py", "secrets.py.j2", "secrets.html.j2", "env.ts",
        "env.go", "env.h", "env.js", "env.sh", "env.json", "env.zip", "env.tar.gz", "env.yaml.bak",
        "environment1", "envs", "settings.xml", "src/settings.xml", "config/settings.xml.bak",
        ".m2/repository/a/a.pom", ".m2/wrapper.properties", "gradle.properties", "nuget.config",
        "docs/gh/hosts.md", "etc/hosts.yml", "pip.conf", "page.html.j2", "nginx.conf.j2", "values.yaml.tpl",
        ".circleci/config.yml", ".config/nextest.toml", ".cargo/config.toml", ".github/config.yml",
        ".git/config", ".dvc/config", "api_keys.md", "creds.py",
        "main.tf", "variables.tf", "variables.tf.json", "vars.tf", "bypass.txt", "compass.csv", "cookies.py",
        "cookies.md", "cookie.txt", "kubeconfig.go", "plan.txt", ".env.example.j2", "README.md.tpl",
    ],
)  # fmt: skip
def test_ordinary_files_are_no_secrets(path: str) -> None:
    assert not which.secret(path)


def test_no_name_takes_long() -> None:
    for name in (
        ".bak" * 60,
        "a_rsa" * 50 + "!",
        ".env" + ".1" * 120 + "!",
        "~" * 250,
        "secret-" * 36,
        "_rsa~" * 50 + "!",
    ):
        before = time.process_time()
        which.secret_name(name)
        assert time.process_time() - before < 1


@pytest.mark.parametrize(
    "path", ["secrets/__init__.py", "src/credentials.py", "docs/secrets.md", "etc/passwd", "keys"]
)
def test_code_and_pages_are_no_secrets(path: str) -> None:
    assert not which.secret(path)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", LINES)
def test_a_name_of_a_patterns_own_words_ends_soon(text: str) -> None:
    """Such a name is where a pattern would try most ways to cut it."""
    pattern = re.compile(text, re.IGNORECASE)
    words = sorted(set(re.findall(r"[A-Za-z]{2,}", re.sub(r"\\[A-Za-z]", "", text)))) or ["a"]
    for unit in (word + sign for word in words for sign in "-_."):
        for end in ("", "!"):
            pattern.fullmatch((unit * MOST)[: MOST - 1] + end)


@pytest.mark.timeout(60)
def test_a_file_that_is_called_vault_many_times() -> None:
    assert not which.secret("vault-" * 42)
    assert which.secret("vault-" * 40 + "x.json") and which.secret("my.vault.backup.yml")
    assert not which.secret("vaulted.json")
