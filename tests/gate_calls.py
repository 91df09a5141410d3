"""Calls of every tool of a run, and the facts of a run around them: cases of the constitution, as data."""

from __future__ import annotations

from typing import Any

from spak.datalog import Fact, Name
from spak.policy.actions import Action
from spak.policy.facts import ACTION

CHECKED: Fact = ("checks_ran", ("pytest", Name("/success")))
HELD: list[Fact] = [("sandboxed", (ACTION, Name("/restricted"))), CHECKED]


def call(tool: str, /, **args: Any) -> Action:
    return Action(tool, args)


ORDINARY = [
    call("cc", source="naive.c", output="baseline.so", flags=["-O2"]),
    call("cc", source="candidate.c", output="candidate.so", flags_from_source=True),
    call("cc", source="src/main.c", shared=False),
    call("instantiate", template="tiled.c", path="candidate.c", params={"TILE": 16, "FLAGS": "-O2"}),
    call("write_file", path="best.c", content="int x;\n"),
    call("write_file", path="hello.txt", content="Hello from a deterministic kernel.\n"),
    call("run", cmd=["cat", "hello.txt"]),
    call("run", cmd=["curl", "-s", "http://127.0.0.1:8000/health"]),
    call("run", cmd=["sh", "-c", "python3 serve.py & sleep 1; curl -f http://localhost:8000/"]),
    call("run", cmd=["sh", "-c", "cd src && ls"]),
    call("run", cmd=["python3", "-c", "import json; print(json.load(open('a.json')))"]),
    call("run", cmd=["pytest", "tests/", "-q"]),
    call("run", cmd=["pytest", "tests/", "-q"], verdict_file="result.txt"),
    call("run", cmd="pytest tests/ -q"),
    call("run", cmd=["pytest", "-q"], working_dir="src", env={"DEBUG": "1", "PYTHONPATH": "."}),
    call("run", cmd=["echo", "a; rm -rf / $(id) `x` > y"]),
    call("read_ast", path="kernel.cu"),
    call("read_file", path="src/a.py", start_line=1),
    call("list_files"),
    call("recall", ref=3, start=0),
    call("contained", root="r", changes=2, paths=["a.py", "b.py"]),
    call("ask_person", question="Which of the two?"),
    call("model_request", provider="anthropic", path="/v1/messages", model="m", request="{}"),
    call("witnessed", agent="claude", event="asked", id="1", tool="Bash", verdict="allow", reason="r"),
    call("tunnel", host="packages.example", port=443),
    call("tunnel_closed", host="packages.example", port=443, sent=1, received=2, why="idle"),
    call("git_commit", message="Mend it", paths=["src/a.py"]),
    call("http_request", url="https://packages.example/simple/x/"),
    call("list_files", path="src", depth=2),
    call("grep", pattern="x", path="src", glob="*.py", context=2),
    call("grep", pattern="x"),
    call("find_symbol", symbol="main"),
    call("references", symbol="src/a.py#f", path="src"),
    call("impact", symbol="src/a.py#f"),
    call("code_map", tokens=200, path="src"),
    call("search_code", pattern="f($A)", language="python", path="src"),
    call("nvcc", source="kernel.cu", flags=["-O3"]),
    call("nsight", cmd=["./kernel"], metrics=["sm__cycles_elapsed.avg"]),
    call("python_repl", code="print(1 + 1)"),
    call("apply_patch", patch="--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x=1\n+x=2\n", protect=["t/"]),
    call("git_commit", message="Say two", paths=["src"]),
    call("git_commit", message="Say three", paths=["tests/conftest.py"]),
]

DENIED = [
    call("find_symbol", symbol="main", path="../x"),
    call("references", symbol="main", path="/etc"),
    call("impact", symbol="main", path="link_dir"),
    call("code_map", path="../x"),
    call("search_code", pattern="f($A)", path="../x"),
    call("run", cmd=["ls"], working_dir="../x"),
    call("run", cmd=["ls"], working_dir="link_dir"),
    call("run", cmd=["ls"], env={"TOKEN": "secret://DEPLOY_KEY"}),
    call("run", cmd=["ls"], env={"A B": "x"}),
    call("cc", source="../x.c"),
    call("cc", source="a.c", output="/etc/x.so"),
    call("cc", source="a.c", output="link_dir/x.so"),
    call("cc", source="a.c", flags=["-Ilink_root/usr"]),
    call("cc", source="a.c", flags=[1]),
    call("cc", source="a.c", output=["x"]),
    call("cc", source="a.c", output=".git/hooks/pre-commit"),
    call("instantiate", template="link_file", path="candidate.c", params={}),
    call("instantiate", template="tiled.c", path=".git/config", params={}),
    call("instantiate", template="tiled.c", params={}),
    call("write_file", path="link_dangling", content=""),
    call("write_file", path=".env", content=""),
    call("write_file", path="x.txt", content="AKIA" + "Q" * 16),
    call("write_file", path="x.txt", content="-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA1234"),
    call("write_file", path="x.txt", content="secret://DEPLOY_KEY"),
    call("run", cmd=[]),
    call("run", cmd=["cat", 1]),
    call("run", cmd=["cat", "hello.txt"], verdict_file="../result.txt"),
    call("run", cmd=["echo", "secret://TOKEN"]),
    call("read_ast", path="link_abs"),
    call("read_file", path=".aws/credentials"),
    call("read_file", path=".config/gcloud/application_default_credentials.json"),
    call("read_file", path="deploy/kubeconfig"),
    call("read_file", path="keys/id_ed25519"),
    call("write_file", path=".ssh/authorized_keys", content=""),
    call("list_files", path=".."),
    call("grep", pattern="x", path=".."),
    call("grep", pattern="x", path=".env"),
    call("grep", pattern="x", path=".ssh"),
    call("grep", pattern="x", path=["src"]),
    call("grep", pattern="x", file="/etc/passwd"),
    call("list_files", path=["src"]),
    call("nvcc", source="kernel.cu", output="../x"),
    call("python_repl", code=1),
    call("apply_patch", patch="--- a/../a.py\n+++ b/../a.py\n@@ -1 +1 @@\n-x=1\n+x=2\n"),
    call("git_commit", message="Mend it", paths=["../a.py"]),
    call("git_commit", message="Mend it", paths="a"),
    call("git_commit", message="Mend it", paths=[".env"]),
    call("git_push", url="https://other.example/app.git", branch="spak/x", token="secret://TOKEN"),
    call("git_push", url=7, branch="spak/x"),
    call("http_request", url="https://packages.example/?q=secret://TOKEN"),
    call("http_request", url="https://packages.example/x", headers={"Authorization": "secret://TOKEN"}),
    call("http_request", url="https://packages.example/x", headers={"Cookie": "a=b"}),
    call("http_request", url="https://packages.example/x", method="POST", body="ghp_" + "a1" * 18),
    call("tunnel", host="packages.example", port=22),
    call("tunnel", host="other.example", port=443),
    call("tunnel", host="93.184.216.34", port=443),
    call("tunnel", host="localhost", port=443),
    call("tunnel", host="packages.example/x?", port=443),
    call("tunnel", host="a@packages.example", port=443),
    call("tunnel", host="PACKAGES.example", port=443),
    call("tunnel", host="packages.example", port="443/x"),
    call("tunnel", host=7, port=443),
    call("deploy", target="production"),
    call("Deploy-It", target="production"),
    call("", x=1),
]


SIGNED = [call("git_push", url="https://packages.example/app.git", branch="spak/x")]
"""Calls that are permitted when a person signs, and else not."""


def fact(pred: str, *args: Any) -> Fact:
    """A fact whose texts with a slash in front are names."""
    return (pred, tuple(Name(arg) if isinstance(arg, str) and arg.startswith("/") else arg for arg in args))


REQUEST = call("http_request", url="https://packages.example/simple/x/")
PUSH = call("run", cmd=["git", "push"])
SITUATIONS: list[tuple[Action, list[Fact]]] = [
    *((action, HELD) for action in (*ORDINARY, *DENIED)),
    *(
        (action, [fact("sandboxed", ACTION, f"/{level}")])
        for action in (
            call("cc", source="a.c"),
            call("run", cmd=["ls"]),
            call("run", cmd=["curl", "http://localhost/"]),
            call("nvcc", source="a.cu"),
            call("nsight", cmd=["./a"]),
            call("python_repl", code="1"),
            call("read_ast", path="a.py"),
            call("write_file", path="a", content=""),
        )
        for level in ("none", "restricted", "docker", "gvisor")
    ),
    (call("write_file", path="a", content=""), [fact("declared_tool", "/write_file")]),
    (call("read_file", path="a"), [fact("declared_tool", "/write_file")]),
    (call("shell", command="git push"), [fact("signed_approval", ACTION, "ada")]),
    (call("shell", command="git push"), [fact("admin_override", ACTION, "ada")]),
    (call("shell", command="git push"), []),
    (call("shell", command="curl http://localhost/"), []),
    *(
        (call("shell", command=line), [fact("sandboxed", ACTION, f"/{level}")])
        for line in ("curl http://localhost/", "sleep 1 &")
        for level in ("none", "restricted", "gvisor")
    ),
    (PUSH, [*HELD, fact("signed_approval", ACTION, "ada")]),
    (PUSH, [fact("signed_approval", ACTION, "ada")]),
    *(
        (call("git_push", url=url, branch="spak/x", **more), [*facts, fact("signed_approval", ACTION, "ada")])
        for url in ("https://packages.example/app.git", "https://other.example/app.git")
        for more in ({}, {"token": "secret://TOKEN"})
        for facts in ([], HELD, [*HELD, fact("secret_may_go", "TOKEN", "/git_push", "token")])
    ),
    *(
        (call("shell", command=line), [fact("signed_approval", ACTION, "ada")])
        for line in (
            "sudo id",
            "rm -rf /",
            "dd if=a of=b",
            "cp a b && ./b",
            "cat /etc/passwd",
            "sed -f x y",
            "a 'b",
        )
    ),
    *(
        (call(tool, **args), [*HELD, fact("allowed_port", host, 5432), fact("allowed_host", "localhost")])
        for host in ("db.example", "localhost")
        for tool, args in (
            ("tunnel", {"host": host, "port": 5432}),
            ("tunnel", {"host": host, "port": 443}),
            ("tunnel", {"host": "packages.example", "port": 22}),
            ("http_request", {"url": f"https://{host}:5432/"}),
        )
    ),
    (call("read_file", path="a\0b"), [fact("signed_approval", ACTION, "ada")]),
    (call("write_file", path="a", content="AKIA" + "Q" * 16), [fact("signed_approval", ACTION, "ada")]),
    (call("write_file", path="a", content="secret://K"), [fact("signed_approval", ACTION, "ada")]),
    (
        call("write_file", path="a", content="secret://K"),
        [fact("secret_may_go", "K", "/write_file", "content")],
    ),
    (
        call("write_file", path="a", content="secret://K"),
        [fact("secret_may_go", "K", "/write_file", "path"), fact("signed_approval", ACTION, "ada")],
    ),
    (call("apply_patch", patch="no patch"), [fact("signed_approval", ACTION, "ada")]),
    (
        call("http_request", url="https://packages.example/?q=ghp_" + "a1" * 18),
        [fact("admin_override", ACTION, "a")],
    ),
    (call("http_request", url="https://packages.example/?password=1"), [fact("admin_override", ACTION, "a")]),
    *(
        (REQUEST, [fact("spent", f"/{what}", spent), fact("allowance", f"/{most}", 100)])
        for what in ("requests", "request_bytes", "tokens", "steps")
        for most in ("requests", "tokens")
        for spent in (0, 99, 100, 101)
    ),
    *((REQUEST, [fact("host_address", ACTION, "a", kind)]) for kind in ("/public", "/private", "/loopback")),
    (REQUEST, [fact("unresolved", ACTION, "packages.example")]),
    (REQUEST, [fact("unresolved", ACTION, "packages.example"), fact("signed_approval", ACTION, "ada")]),
    (
        REQUEST,
        [fact("host_address", ACTION, "a", "/public"), fact("host_address", ACTION, "b", "/link_local")],
    ),
    *(
        (call("http_request", url=url, **more), [])
        for url, more in (
            ("http://packages.example/x", {}),
            ("https://packages.example:8443/x", {}),
            ("https://other.example/x", {}),
            ("https://packages.example/x", {"method": "HEAD"}),
            ("https://packages.example/x", {"method": "POST"}),
            ("https://packages.example/x", {"headers": {"Accept": "text/html"}}),
            ("https://packages.example/x", {"headers": {"Accept-Encoding": "gzip"}}),
            ("https://packages.example/x", {"headers": {"Accept-Language": "de"}}),
            ("https://packages.example/x", {"headers": {"X-Data": "abc"}}),
            ("https://packages.example/x", {"body": "abc"}),
        )
    ),
    (call("write_file", path="package.json", content="{}"), []),
    *(
        (call("shell", command=line), [])
        for line in (
            "cat .git/HEAD",
            "python3 setup.py --version",
            "cp README.md .",
            "chmod u+x build/x",
            "chmod 644 Makefile",
            "git add build/x.o",
            "git add Makefile",
            "git add .",
            "mv build/x.o y.o",
        )
    ),
    (call("deploy", target="x"), []),
    (call("cc", source="a.c", output="."), HELD),
    *((call("git_commit", message="x", paths=[path]), HELD) for path in ("Makefile", "build/x.o", ".")),
    (call("recall", ref=1), []),
]
"""Calls with what the run around them knows: one for each thing that a rule tells apart."""

DOES = fact("runs_program", ACTION, 1, "make")
EDITS = fact("uses_path", ACTION, "/edits", "/inside", "a")
ASKS = fact("asks_url", ACTION, "https", "packages.example", 443)
FACTS: list[list[Fact]] = [
    *(
        [fact("act", ACTION, kind), *more]
        for kind in ("/validate", "/other")
        for more in (
            [fact("validator", ACTION, "PyTest")],
            [fact("validator", ACTION, "PyTest"), fact("uses_path", ACTION, "/reads", "/inside", "a")],
            [fact("validator", ACTION, "PyTest"), fact("uses_path", ACTION, "/reads", "/secret", "a")],
        )
    ),
    *([fact("act", ACTION, kind)] for kind in ("/ask", "/plan", "/check", "/validate", "/tool", "/other")),
    *(
        [fact("tool", ACTION, tool)]
        for tool in ("/read_file", "/apply_patch", "/shell", "/python_repl", "/other")
    ),
    [fact("signed_approval", ACTION, "ada")],
    [fact("runs_code", ACTION), fact("tool", ACTION, "/other")],
    [fact("tool", ACTION, "/python_repl"), fact("sandboxed", ACTION, "/restricted")],
    [fact("tool", ACTION, "/run"), fact("sandboxed", ACTION, "/restricted")],
    *([fact("tool", ACTION, tool), DOES] for tool in ("/shell", "/run", "/nsight", "/other")),
    [fact("tool", ACTION, "/shell"), fact("runs_program", ACTION, 2, "make")],
    *(
        [fact("tool", ACTION, tool), DOES, *more]
        for tool in ("/shell", "/run", "/other")
        for more in (
            [fact("only_reads", ACTION, 1)],
            [fact("only_reads", ACTION, 2)],
            [fact("allowed_program", "make")],
            [fact("allowed_program", "other")],
            [fact("only_reads", ACTION, 1), fact("sets_variable", ACTION, "A", "b")],
            [fact("only_reads", ACTION, 1), fact("uses_path", ACTION, "/reads", "/secret", ".env")],
            [fact("only_reads", ACTION, 1), fact("uses_path", ACTION, "/redirects", "/inside", "a")],
            [fact("sandboxed", ACTION, "/restricted")],
            [fact("sandboxed", ACTION, "/none")],
        )
    ),
    *(
        [fact("tool", ACTION, tool), EDITS]
        for tool in ("/write_file", "/apply_patch", "/read_file", "/other")
    ),
    [fact("tool", ACTION, "/apply_patch"), EDITS, fact("patch_trouble", ACTION, "a", "b")],
    [fact("tool", ACTION, "/other"), fact("declares_use", ACTION, "/reads")],
    [DOES],
    [EDITS],
    *(
        [
            fact("tool", ACTION, "/run"),
            DOES,
            fact("uses_path", ACTION, how, "/secret", ".env"),
            fact("sandboxed", ACTION, f"/{level}"),
        ]
        for how in ("/walks", "/reads")
        for level in ("none", "restricted")
    ),
    *(
        [
            fact("tool", ACTION, "/shell"),
            DOES,
            fact("uses_path", ACTION, "/walks", "/secret", ".env"),
            fact("sandboxed", ACTION, f"/{level}"),
        ]
        for level in ("none", "restricted")
    ),
    *(
        [fact("tool", ACTION, tool), fact("allowed_host", "packages.example"), ASKS, *more]
        for tool in ("/http_request", "/other")
        for more in (
            [],
            [fact("asks_method", ACTION, "GET")],
            [fact("asks_method", ACTION, "GET"), fact("sends_body", ACTION)],
        )
    ),
    *(
        [
            fact("tool", ACTION, "/deploy"),
            fact("least_sandbox", "/deploy", f"/{least}"),
            fact("sandboxed", ACTION, f"/{level}"),
            fact("signed_approval", ACTION, "ada"),
        ]
        for least in ("restricted", "docker", "gpu", "gvisor")
        for level in ("none", "restricted", "docker", "gpu", "gvisor")
    ),
    *(
        [fact("tool", ACTION, "/deploy"), fact("spent", "/a", 7), fact("allowance", what, 5), *more]
        for what in ("/a", "/b")
        for more in ([], [fact("takes", ACTION, "/a", 0)], [fact("takes", ACTION, "/b", 9)])
    ),
    [fact("spent", "/a", 7), fact("allowance", "/a", 5)],
]
"""Situations that no call of a tool makes, which the rules tell apart all the same."""
