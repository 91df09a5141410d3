"""numpy's BLAS on one thread for a while: a reference on all cores would disturb the measurement.

The number of threads is fixed when the library is loaded, which another part of the process may have done
long ago; the library's own call changes it later. Where no such call is found, nothing is changed and the
caller is told.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_NAMES = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)


@contextmanager
def one_thread() -> Iterator[bool]:
    """Within it numpy multiplies on one thread; False when no known BLAS was found."""
    import numpy  # noqa: F401  (loads the library that is looked for)

    libraries = _libraries()
    before = [get() for get, _ in libraries]
    for _, put in libraries:
        put(1)
    try:
        yield bool(libraries)
    finally:
        for (_, put), count in zip(libraries, before, strict=True):
            put(count)


def _libraries() -> list[tuple[Callable[[], int], Callable[[int], object]]]:
    """(get, set) of each BLAS that is loaded in this process."""
    paths = set()
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[5:]
        if path and any(word in path[0] for word in ("blas", "mkl_rt", "libblis")):
            paths.add(path[0])
    found = []
    for path_ in sorted(paths):
        try:
            library = ctypes.CDLL(path_)
        except OSError:
            continue
        pair = next(
            ((get, put) for get, put in _NAMES if hasattr(library, get) and hasattr(library, put)), None
        )
        if pair is not None:
            found.append((getattr(library, pair[0]), getattr(library, pair[1])))
    return found
