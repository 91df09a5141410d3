"""Building the sandbox's image: from a registry, from Debian's packages, or from this host's installed ones.

`build` makes a base where there is none to pull, compiles the guest, and lets the engine put them together
from sandbox/base (sandbox/gpu). The image's labels say how it was made, the guest's hash, and its packages.
Programs in an image from packages have no set-user bit.
"""

from __future__ import annotations

import io
import platform
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from spak import data
from spak.errors import UnavailableError
from spak.sandbox import docker_engine, slots
from spak.sandbox.docker import GPU_IMAGE, GUEST, IMAGE, guest_hash

Way = Literal["registry", "packages", "host"]
WAYS: tuple[Way, ...] = ("host", "packages", "registry")
PACKAGES_LABEL = "org.spak.packages"
WAY_LABEL = "org.spak.built-from"
BASE = "spak-sandbox-base:latest"

_TIMEOUT_S = 1800
_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_FORMAT = "${db:Status-Status}\t${Package}\t${Version}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
Say = Callable[[str], None]


def build(way: Way, *, gpu: bool = False, base: str = "", say: Say = lambda text: None) -> dict[str, str]:
    """Build the image and tag it; its name, id, and what it was made from.

    `base` names another image than the Dockerfile does; one that the engine has is not pulled.
    Raises: UnavailableError `unavailable.sandbox` (no engine), `unavailable.image` (it cannot be built).
    """
    client = docker_engine.connect()
    name, folder = (GPU_IMAGE, "sandbox/gpu") if gpu else (IMAGE, "sandbox/base")
    if gpu and way != "registry":
        raise _cannot("CUDA's image comes from a registry only", "spak sandbox build --gpu --from registry")
    with tempfile.TemporaryDirectory(prefix="spak-image-") as place:
        context = Path(place)
        say("compiling the guest")
        _files(context, folder)
        labels = {docker_engine.GUEST_LABEL: guest_hash(), WAY_LABEL: way}
        arguments = {"BASE": base} if base else {}
        if way != "registry":
            arguments = {"BASE": BASE}
            archive = Path(place).parent / f"{context.name}.tar"
            try:
                say("collecting packages")
                packages = _from_host(archive) if way == "host" else _bootstrap(archive)
                say(f"importing {archive.stat().st_size >> 20} MiB")
                _import(client, archive)
            finally:
                archive.unlink(missing_ok=True)
            labels[PACKAGES_LABEL] = " ".join(packages)
        say("building the image")
        number = _build(client, context, name, arguments, labels, pull=way == "registry" and not base)
    if way == "registry":
        labels[PACKAGES_LABEL] = " ".join(_packages_of(client, number))
        with tempfile.TemporaryDirectory(prefix="spak-image-") as place:
            Path(place, "Dockerfile").write_text(f"FROM {number}\n")
            number = _build(client, Path(place), name, {}, labels, pull=False)
    return {"image": name, "id": number, "from": way, "packages": labels[PACKAGES_LABEL]}


# ---- what goes into each image


def _files(context: Path, folder: str) -> None:
    """The Dockerfile, the users and the compiled guest."""
    gcc = shutil.which("gcc")
    if gcc is None:
        raise _cannot(
            "gcc is not installed, which the guest is compiled with", "apt-get install gcc libc6-dev"
        )
    (context / "Dockerfile").write_bytes(data.path(f"{folder}/Dockerfile").read_bytes())
    users = [f"spak:x:{uid}:{uid}:spak:/ws:/bin/sh" for uid in slots.UIDS]
    (context / "passwd").write_text("\n".join(["root:x:0:0:root:/:/bin/false", *users, ""]))
    (context / "group").write_text("\n".join(["root:x:0:", *(f"spak:x:{uid}:" for uid in slots.UIDS), ""]))
    (context / "nsswitch.conf").write_bytes(data.path("sandbox/etc/nsswitch.conf").read_bytes())
    line = [gcc, "-std=gnu11", "-O2", "-static", "-o", str(context / "guest"), str(data.path(GUEST))]
    done = subprocess.run(line, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise _cannot(
            f"the guest does not compile: {done.stderr.strip()[-400:]}", "apt-get install libc6-dev"
        )
    (context / "guest").chmod(0o755)
    for name in ("passwd", "group", "nsswitch.conf"):
        (context / name).chmod(0o644)


def wanted() -> list[str]:
    """The packages that sandbox/base/packages.txt names."""
    lines = data.path("sandbox/base/packages.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def closure(status: str, names: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """From dpkg-query's lines: the installed ones of the names with all that they depend on, each with its
    version; and the names that are not installed."""
    versions: dict[str, str] = {}
    needs: dict[str, list[list[str]]] = {}
    provided: dict[str, str] = {}
    for line in status.splitlines():
        state, name, version, depends, provides = line.split("\t")
        if state != "installed":
            continue
        versions[name] = version
        needs[name] = [[_plain(one) for one in group.split("|")] for group in depends.split(",")]
        for one in filter(None, map(_plain, provides.split(","))):
            provided.setdefault(one, name)
    missing = [name for name in names if name not in versions]
    found: dict[str, str] = {}
    todo = [name for name in names if name in versions]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = versions[name]
        for group in needs[name]:
            known = (one if one in versions else provided.get(one, "") for one in group)
            todo += [one for one in known if one][:1]
    return dict(sorted(found.items())), missing


def _from_host(archive: Path) -> list[str]:
    """A tar of the files of installed packages; their names with versions."""
    if shutil.which("dpkg-query") is None:
        raise _cannot("this host has no Debian packages", "spak sandbox build --from registry")
    found, missing = closure(_run(["dpkg-query", "-W", "-f", _FORMAT]), wanted())
    if missing:
        raise _cannot(f"not installed here: {', '.join(missing)}", f"apt-get install -y {' '.join(missing)}")
    listed = {line for line in _run(["dpkg-query", "-L", *found]).splitlines() if line.startswith("/")}
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in _LINKS:
            link = Path("/", name)
            if link.is_symlink():
                tar.add(link, name, recursive=False, filter=_tidy)
        for path in _real(listed):
            tar.add(path, path.lstrip("/"), recursive=False, filter=_tidy)
    return [f"{name}={version}" for name, version in found.items()]


def _real(listed: Iterable[str]) -> list[str]:
    """The listed paths as they really are here, with the alternatives that lead to them; parents first."""
    found = set()
    for path in listed:
        folder, _, name = path.rpartition("/")
        real = f"{Path(folder or '/').resolve()}/{name}".replace("//", "/")
        if name and not name.startswith(".") and not _left_out(real) and Path(real).exists():
            found.add(real)
    for link in sorted(Path("/usr/bin").iterdir()):
        target = str(link.readlink()) if link.is_symlink() else ""
        if target.startswith("/etc/alternatives/") and str(link.resolve()) in found:
            found |= {str(link), target}
    parents = {str(parent) for path in found for parent in Path(path).parents}
    return sorted((found | parents) - {"/"} - {f"/{name}" for name in _LINKS if Path("/", name).is_symlink()})


def _left_out(path: str) -> bool:
    return path.startswith(("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/var/", "/boot/"))


def _tidy(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Root's, without times and without set-user bits; nothing but files, folders and links."""
    if not (entry.isfile() or entry.isdir() or entry.issym() or entry.islnk()):
        return None
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode &= 0o777 | stat.S_ISVTX
    return entry


def _bootstrap(archive: Path) -> list[str]:
    """The same from Debian's archive, unpacked only: no script of a package runs."""
    if shutil.which("mmdebstrap") is None:
        raise _cannot("mmdebstrap is not installed", "apt-get install mmdebstrap")
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "bookworm")
    raw = archive.with_suffix(".raw.tar")
    names = ",".join(wanted())
    try:
        _run(
            ["mmdebstrap", "--variant=extract", "--mode=root", f"--include={names}", suite, str(raw)],
            {"SOURCE_DATE_EPOCH": "0"},
        )
        status = ""
        with tarfile.open(raw) as old, tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as new:
            for entry in old:
                name = entry.name.removeprefix("./")
                content = old.extractfile(entry) if entry.isfile() else None
                if name == "var/lib/dpkg/status" and content is not None:
                    status = content.read().decode(errors="replace")
                    content = io.BytesIO(status.encode())
                    entry.size = len(status.encode())
                if not _left_out(f"/{name}/") and (kept := _tidy(entry)) is not None:
                    new.addfile(kept, content)
    finally:
        raw.unlink(missing_ok=True)
    return list(_status(status))


# ---- the engine


def _import(client: Any, archive: Path) -> None:
    with _asked():
        answer = client.import_image(src=str(archive), repository=BASE.partition(":")[0], tag="latest")
    if '"error"' in str(answer):
        raise _cannot(f"the engine did not import the packages: {answer}", "free some disk space")


def _build(
    client: Any, context: Path, name: str, arguments: dict[str, str], labels: dict[str, str], pull: bool
) -> str:
    with _asked(), tempfile.TemporaryFile() as packed:
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for file in sorted(context.iterdir()):
                tar.add(file, file.name, filter=_tidy)
        packed.seek(0)
        steps = client.build(
            fileobj=packed, custom_context=True, tag=name, buildargs=arguments, labels=labels, pull=pull,
            rm=True, forcerm=True, nocache=True, network_mode="none", decode=True,
        )  # fmt: skip
        for step in steps:
            if "error" in step:
                mend = "spak sandbox build --from host" if pull else "see the engine's words"
                raise _cannot(f"the engine did not build it: {step['error'].strip()}", mend)
        return str(client.inspect_image(name)["Id"])


def _packages_of(client: Any, image: str) -> Iterator[str]:
    """What the image's own list of packages says, read without running anything of it."""
    import docker.errors  # type: ignore[import-untyped]

    text = ""
    with _asked():
        made = client.create_container_from_config({"Image": image}, None)["Id"]
        try:
            chunks, _ = client.get_archive(made, "/var/lib/dpkg/status")
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
                content = tar.extractfile(tar.next() or tarfile.TarInfo())
                text = content.read().decode(errors="replace") if content else ""
        except docker.errors.NotFound:
            pass  # not Debian's: there is no list
        finally:
            docker_engine.remove(client, made)
    return _status(text)


def _status(text: str) -> Iterator[str]:
    """`name=version` of each package in the text of a dpkg status file."""
    for block in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version): (.*)$", block, re.MULTILINE))
        if len(fields) == 2:
            yield f"{fields['Package']}={fields['Version']}"


@contextmanager
def _asked() -> Iterator[None]:
    try:
        with docker_engine.engine_errors():
            yield
    except docker_engine.EngineError as error:
        raise _cannot(
            f"the engine refused: {error}", "see the engine's words, or free some disk space"
        ) from error


def _run(line: Sequence[str], more: dict[str, str] | None = None) -> str:
    env = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C",
        **(more or {}),
    }
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env=env,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _cannot(f"{line[0]}: {error}", "see docs/sandbox.md") from error
    if done.returncode:
        raise _cannot(f"{line[0]} failed: {done.stderr.strip()[-400:]}", "see its words")
    return done.stdout


def _plain(one: str) -> str:
    """A dependency without version and architecture."""
    return re.sub(r"\s*\(.*|:.*", "", one.strip()).strip()


def _cannot(message: str, hint: str) -> UnavailableError:
    return UnavailableError("unavailable.image", message, hint)
