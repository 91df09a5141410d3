"""What `git_commit` runs inside the sandbox: git's plumbing around a repository folder of its own.

Takes one JSON object on standard input; prints one: the commit, its tree and files, or a code with a hint.
With `tree` it says which tree a commit of all files would have, with `list` which trees the commits have
that lead to new values of refs, and those of commits that branches were moved to; both commit nothing and
work in a workspace that is read-only. `at` names the folder of a repository below the top, `work` that of its
files.
Standard library only. The text runs under the toolchain's Python, isolated, with the workspace at /ws.
"""

from __future__ import annotations

GUEST = r"""
import json, os, subprocess, sys

MAX_SHOWN = 200
order = json.load(sys.stdin)
own, top = "/tmp/spak-git", "/ws"
ws = os.path.join(top, order.get("work", "")).rstrip("/")
dot = os.path.join(top, order.get("at", ".git"))
os.makedirs(own + "/objects"); os.makedirs(own + "/refs"); os.makedirs(own + "/info")
for name, text in (
    ("HEAD", "ref: refs/heads/spak\n"),
    ("info/exclude", order["exclude"]),
    ("config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = false\n"
               "\thooksPath = /dev/null\n\tattributesFile = /dev/null\n\texcludesFile = /dev/null\n"
               "\tcommitGraph = false\n\tprotectHFS = true\n\tprotectNTFS = true\n"
               "\tautocrlf = false\n\tlogAllRefUpdates = false\n"
               "\tsymlinks = true\n\tfileMode = true\n\tpager = cat\n\teditor = false\n"
               "[gc]\n\tauto = 0\n[commit]\n\tgpgSign = false\n[submodule]\n\trecurse = false\n"
               "[diff]\n\tignoreSubmodules = all\n[protocol]\n\tallow = never\n"),
):
    with open(own + "/" + name, "w", encoding="utf-8") as file:
        file.write(text)
stamp = "%d +0000" % order.get("time", 0)
looking = order.get("tree") or "list" in order
env = {
    "PATH": os.path.dirname(order["git"]) + ":/usr/bin:/bin", "HOME": own, "LC_ALL": "C", "TZ": "UTC",
    "GIT_DIR": own, "GIT_WORK_TREE": ws,
    "GIT_OBJECT_DIRECTORY": own + "/objects" if looking else dot + "/objects",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES": dot + "/objects" if looking else "",
    "GIT_SHALLOW_FILE": dot + "/shallow",
    "GIT_INDEX_FILE": own + "/index", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_ATTR_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1", "GIT_LITERAL_PATHSPECS": "1", "GIT_OPTIONAL_LOCKS": "0",
    "GIT_AUTHOR_NAME": order.get("name", ""), "GIT_AUTHOR_EMAIL": order.get("mail", ""),
    "GIT_COMMITTER_NAME": order.get("name", ""), "GIT_COMMITTER_EMAIL": order.get("mail", ""),
    "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp,
}

def stop(code, message, hint=""):
    json.dump({"code": "git_commit." + code, "message": message, "hint": hint}, sys.stdout)
    sys.exit(1)

def git(*words, given=b""):
    done = subprocess.run([order["git"], *words], cwd=ws, env=env, input=given, capture_output=True)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = said[-1][:300] if said else done.returncode
        stop("failed", "git %s: %s" % (words[0], reason), "is the repository sound?")
    return done.stdout

def parts(data):
    return [item for item in data.split(b"\0") if item]

def text(data):
    return data.decode("utf-8", "backslashreplace")

if "list" in order:
    found = b""
    if order["list"]:
        found += git("log", "--format=%T", *order["list"], "--not", *order["known"], "--")
    if order["moved"]:
        found += git("log", "--no-walk", "--format=%T", *order["moved"], "--")
    json.dump({"trees": found.decode().split()}, sys.stdout)
    sys.exit()
parent = order["parent"]
if parent:
    git("read-tree", parent + "^{commit}")
rows = parts(git("ls-files", "-z", "-s"))
nested = [row.split(b"\t", 1)[1] for row in rows if row.startswith(b"160000 ")]
paths = order["paths"]
others = parts(git("ls-files", "-z", "-o", "--exclude-standard", "--", *paths))
nested += [item for item in others if item.endswith(b"/")]
if nested:
    stop("nested", "%s is a repository of its own" % ascii(text(nested[0])), "ignore it")
git("add", "-A", "--", *(paths or ["."]))
before = git("rev-parse", parent + "^{tree}").decode().strip() if parent else git("mktree").decode().strip()
tree = git("write-tree").decode().strip()
changed = parts(git("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", before, tree))
asked = ("working-tree-encoding",) if order.get("tree") else ("working-tree-encoding", "filter")
given = b"".join(item + b"\0" for item in changed)
words = git("check-attr", "-z", "--stdin", *asked, given=given).split(b"\0")
for name, what, value in zip(words[0::3], words[1::3], words[2::3]):
    if value not in (b"unspecified", b"unset"):
        wanted = "%s wants the %s %s" % (ascii(text(name)), text(what), ascii(text(value)))
        stop("filter", wanted, "other text would be committed than was checked: commit it by hand")
if order.get("tree"):
    json.dump({"tree": tree, "parent": before}, sys.stdout)
    sys.exit()
if paths:
    git("update-index", "-q", "--refresh")
    left = parts(git("diff-files", "-z", "--name-only"))
    left += parts(git("ls-files", "-z", "-o", "--exclude-standard"))
    if left:
        stop("partial", "%s changed too and would be left out" % ascii(text(left[0])),
             "what was checked is committed whole: leave `paths` out, or ignore the file")
if tree == before:
    stop("nothing", "nothing changed since the last commit", "change something, or go on without a commit")
command = ["commit-tree", tree, "-F", "-"] + (["-p", parent] if parent else [])
commit = git(*command, given=order["message"].encode("utf-8")).decode().strip()
with open(own + "/index", "rb") as file:
    data = file.read()
if os.path.lexists(dot + "/spak-index"):
    os.unlink(dot + "/spak-index")
with open(dot + "/spak-index", "xb") as file:
    file.write(data)
json.dump({"commit": commit, "tree": tree, "count": len(changed),
           "files": [ascii(text(item))[1:-1] for item in changed[:MAX_SHOWN]]}, sys.stdout)
"""
