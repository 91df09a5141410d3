"""The child process that holds a local model: `python -m spak.llm.local_server MODEL WINDOW THREADS NAME`.

Reads a key from the first line of standard input, serves the model on a free port of this machine to whoever
has the key, and prints `{"url": ...}` once it is there. It ends when standard input ends, so that it never
outlives the process that started it. Native code that dies takes only this process with it.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Serve the model that the arguments name until the input closes."""
    path, window, threads, name = sys.argv[1:]
    key = sys.stdin.readline().strip()
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = int(window)
    params.n_parallel = 1
    params.port = 0
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [key]
    params.use_jinja = True
    params.ui = False
    params.verbosity = -1
    params.cpuparams.n_threads = int(threads)
    params.model_alias = {name}
    server = xllamacpp.Server(params)
    print(json.dumps({"url": server.listening_address}), flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads on; a full pipe would stop the engine
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
