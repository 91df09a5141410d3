"""What kind of place a path is, by its name and by what was seen there."""

from __future__ import annotations

import re

from spak.commandline.world import Seen

_DATA = re.compile(
    r".*\.(md|rst|txt|log|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg|xml|html?|css|png|jpe?g|gif|svg|pdf|patch|diff|lock)\Z",
    re.IGNORECASE,
)

_SECRET = re.compile(
    r"\.env(\.(?!example|sample|template|dist)[\w.-]+)?|\.netrc|_netrc|\.pgpass|\.git-credentials|\.npmrc|\.pypirc|"
    r"id_(rsa|dsa|ecdsa|ed25519)|.*\.(pem|p12|pfx|keystore|jks|kdbx)|.*_rsa|\.htpasswd|credentials(\.json)?|"
    r"[\w-]*(secrets?|credentials?|passwords?)(\.(ya?ml|json|toml|env|txt|ini|cfg|conf|properties|enc|gpg|asc))?|"
    r"service[-_]account.*\.json|g?shadow-?|\.?auth\.(json|toml|ya?ml)|\.[\w-]*(token|password|passwd|secrets?|credentials)|"
    r"(.*\.)?(dev|prod|production|staging|local)?\.?vars|.*\.(tfvars|tfstate|ppk|gpg|asc|agekey|keytab|p8|der|jceks|bks|ovpn)|"
    r"(private|server|client|tls|ssl|host|signing|deploy|master|api)[-_.]?key(\.(key|txt|json|pem))?|.*\.key|"
    r"application_default_credentials\.json|\.vault-token|\.dockercfg|\.boto|\.s3cfg|\.my\.cnf|kubeconfig|\.cargo-credentials",
    re.IGNORECASE,
)
_SECRET_FOLDERS = frozenset(
    {".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".gcloud", "gcloud", ".password-store"}
)
_KEPT = frozenset({"secrets", ".secrets", "credentials", ".credentials", "private_keys", "keystore"})
"""Folders whose files are secret unless they are code: a package may be called so."""
_CODE = re.compile(
    r".*\.(py|pyi|[cm]?[jt]sx?|go|rs|java|kt|rb|c|h|cc|cpp|hpp|cs|php|swift|md|rst|html?|css)", re.IGNORECASE
)
"""Code and pages: no file of secrets, though a folder or a name says `secrets`."""
SECRET_PATHS = (
    rf"(?:.*/)?(?:(?:{'|'.join(map(re.escape, sorted(_SECRET_FOLDERS)))})(?:/.*)?"
    rf"|(?!(?:{_CODE.pattern})\Z)(?:(?:{'|'.join(map(re.escape, sorted(_KEPT)))})/.*|{_SECRET.pattern}))"
)
"""All that `secret` calls one, and a little more: a pattern for those who have many paths to ask it of."""
_CONTROL = re.compile(
    r"package(-lock)?\.json|(GNU)?[Mm]akefile|.*\.mk|setup\.(py|cfg)|pyproject\.toml|conftest\.py|sitecustomize\.py|"
    r"usercustomize\.py|.*\.pth|tox\.ini|noxfile\.py|pytest\.ini|\.?(bash|zsh)(rc|_profile|env)|\.(profile|envrc|npmrc|"
    r"yarnrc(\.yml)?|gitattributes|gitmodules|gitconfig|pre-commit-config\.yaml|eslintrc.*|babelrc.*|mocharc.*)|"
    r"(jest|vite|vitest|webpack|rollup|babel|eslint|gulpfile|gruntfile|karma|next|playwright)[\w.]*\.(config\.)?"
    r"(c|m)?[jt]s|build\.rs|cargo\.toml|config\.toml|cmakelists\.txt|justfile|rakefile|gemfile|build\.gradle(\.kts)?|"
    r"pom\.xml|docker(file|-compose\.ya?ml)|jenkinsfile|\.gitlab-ci\.yml|\.travis\.yml|"
    # by rule: settings that programs look for by themselves, and languages of builds
    r"\.(?!gitignore\Z|gitkeep\Z|dockerignore\Z|editorconfig\Z|keep\Z|env)[\w-]*(rc|spec|config|opts|just\w*|file)"
    r"(\.(c|m)?(js|ts|json|ya?ml|toml|py))?|\.?[\w-]*(just|make|rake|gem|brew|guard|vagrant|thor|cap|pod|pip|proc|tilt|task|earth)"
    r"files?(\.\w+)?|[\w.-]+\.(ninja|cmake|mk|gradle|kts|(cs|fs|vb|vcx)proj|sln|props|targets|gemspec|bzl|bazel|cabal|nix|"
    r"rockspec|podspec|sbt|pri|pro|opam|gyp|gypi)|[\w-]+\.conf(ig)?\.\w+|"
    r"CTestTestfile\.cmake|(py)?(test|lint|tox|pytest|mypy|ruff|coverage|flake8|pylint|nox|hatch|poetry|pdm|uv|pixi|deno|bun|biome|"
    r"dune|rust-toolchain|clippy|rustfmt|mise|taplo|hypothesis|behave|alembic|babel|wrangler|netlify|fly)(-project)?\.(toml|ini|cfg|jsonc?|ya?ml)|"
    r"\.?(tsconfig|jsconfig|turbo|nx|lerna|deno|composer|project|angular|task)\S*\.json|docker-compose\S*\.ya?ml|"
    r"\.\w*init|\.(mcp\.json|tool-versions|clangd|dir-locals\.el|[\w-]+\.toml)|spak\.toml|go\.work|\.?lefthook(-local)?\.\w+|"
    r".*\.(code-workspace|sublime-project)|\.sublime-project|"
    r"compose\.ya?ml|(meson(_options)?|sconstruct|sconscript|wscript|configure|build\.(sh|xml|boot|zig))(\.build|\.ac|\.in|\.txt)?",
    re.IGNORECASE,
)
CONTROL_NAMES = (
    *("makefile", "gnumakefile", "package.json", "package-lock.json", "setup.py", "setup.cfg"),
    *("pyproject.toml", "conftest.py", "sitecustomize.py", "usercustomize.py", "tox.ini", "noxfile.py"),
    *("pytest.ini", "build.rs", "cargo.toml", "config.toml", "cmakelists.txt", "justfile", "rakefile"),
    *("gemfile", "build.gradle", "pom.xml", "dockerfile", "docker-compose.yml", "jenkinsfile"),
    *(".bashrc", ".envrc", ".npmrc", ".gitattributes"),
)
"""Names of files that say what is run, written out."""
_CONTROL_FOLDERS = frozenset(
    {
        *(".github", ".vscode", ".husky", ".circleci", ".cargo", ".devcontainer", ".idea", ".direnv"),
        *(".cursor", ".spak", "sitecustomize", "usercustomize"),
    }
)
_GENERATED = re.compile(
    r"build|dist|out|target|node_modules|__pycache__|\.?(pytest|mypy|ruff)?_?cache|\.tox|\.nox|\.eggs|.*\.egg-info|"
    r"htmlcov|coverage|\.coverage|\.hypothesis|tmp|temp|bin|obj|\.next|\.nuxt|\.parcel-cache|\.turbo|_build|site|"
    r"cmake-build-\w+|\.?venv|\.gradle|logs?|[\w.-]+\.(pyc|pyo|o|obj|a|so|tmp|log|orig|rej|bak|swp|class|out|cache)|"
    r"\*\.(pyc|pyo|o|obj|a|so|tmp|log|orig|rej|bak|swp|class|out|egg-info)|\.DS_Store|core|a\.out",
    re.IGNORECASE,
)


def generated(path: str) -> bool:
    """True for what a build makes again, and for what lies in a folder of such things."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return any(_GENERATED.fullmatch(part) for part in parts[:-1]) or bool(
        parts and _GENERATED.fullmatch(parts[-1])
    )


def secret_name(name: str) -> bool:
    """Whether a file of that name is one of secrets. The one list: launchers mask by it too."""
    return _SECRET.fullmatch(name.casefold()) is not None and not is_code(name)


def secret_folder(name: str) -> bool:
    """Whether all that lies in a folder of that name is secret."""
    return name.casefold() in _SECRET_FOLDERS


def keeps_secrets(name: str) -> bool:
    """Whether what lies in a folder of that name is secret but for code."""
    return name.casefold() in _KEPT


def is_code(name: str) -> bool:
    """Whether the name is one of code or of a page, which no folder makes a secret."""
    return _CODE.fullmatch(name) is not None


def of_git(name: str) -> bool:
    """Whether a name is git's folder, also as a careless file system would have it."""
    return name.casefold().rstrip(". ") in (".git", "git~1")


def secret(path: str) -> bool:
    """True for a file that holds secrets, by its name or by that of a folder above it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return bool(parts) and (
        secret_name(parts[-1])
        or any(map(secret_folder, parts))
        or (any(map(keeps_secrets, parts[:-1])) and not is_code(parts[-1]))
    )


def place(seen: Seen, how: str, asked: str) -> str:
    """The word for a path's place: outside, refused, root, git, secret, control, hard_link, or inside."""
    if seen.place != "inside":
        return seen.place
    parts = [part for part in seen.path.split("/") if part not in ("", ".")]
    lowered = [part.casefold() for part in parts]
    if any(map(of_git, parts)):
        return "git"
    if not parts:
        return "root"
    if seen.kind == "file" and seen.links > 1:
        return "hard_link"
    if secret(seen.path):
        return "secret"
    if _CONTROL_FOLDERS & set(lowered) or _CONTROL.fullmatch(parts[-1]):
        return "control"
    if generated(seen.path):
        return "generated"
    return "inside"


def is_data(name: str) -> bool:
    """Whether a name is one of text or data, which is no program."""
    return _DATA.match(name) is not None
