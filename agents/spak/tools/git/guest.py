"""What `git_commit` runs inside the sandbox: git's plumbing around a repository folder of its own.

Takes one JSON object on standard input; prints one: the commit, its tree and files, or a code with a hint.
With `tree` it says which tree a commit of all files would have, with `list` which trees the commits have
that lead to new values of refs, and those of commits that branches were moved to, with `tips` what stood in
files of secrets in the commits below them and in the index, with `push` the pack of what a commit has and
another repository has not; all four commit nothing and work in a workspace that is read-only. `at` names
the folder of a repository below the top, `work` that of its files.
Standard library only. The text runs under the toolchain's Python, isolated, with the workspace at /ws.
"""

from __future__ import annotations

GUEST = r"""
import base64, json, os, re, shutil, subprocess, sys, threading, time

MAX_SHOWN = 200
MAX_INDEXES = 64 << 20
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
looking = order.get("tree") or "list" in order or "tips" in order or "push" in order
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
    tool = "git_push." if "push" in order else "git_commit."
    json.dump({"code": tool + code, "message": message, "hint": hint}, sys.stdout)
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

# What git prints, split at NUL, as long as it has time; `ended` gets its exit.
def printed(words, seconds, ended, given=None):
    with subprocess.Popen(
        [order["git"], *words], cwd=ws, env=env, stdin=given or subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as said:
        clock, rest = threading.Timer(seconds, said.kill), b""
        clock.start()
        while chunk := said.stdout.read(1 << 16):
            *items, rest = (rest + chunk).split(b"\0")
            yield from items
        clock.cancel()
    ended.append(said.returncode)

# Each change of a file in the commits below the tips, as raw rows of git with paths: those listed in time,
# or `whole` all of them.
def rows_of_history(tips, whole=False):
    with open(own + "/tips", "w", encoding="ascii") as file:
        file.write("\n".join(tips) + "\n")
    words = ("log", "--ignore-missing", "--stdin", "-m", "--root", "--raw", "--no-abbrev", "--no-renames",
             "--no-show-signature", "-z", "--format=", "--max-count=%d" % order["commits"])
    row, ended = None, []
    with open(own + "/tips", "rb") as given:
        for item in printed(words, order["seconds"], ended, given):
            if row is not None:
                yield row, item
                row = None
            elif item.strip().startswith(b":"):
                row = item.strip()[1:].split()
    if whole and ended[0]:
        stop("failed", "git log cannot list all new commits", "is it sound, and no partial clone?")

# Copies the index of a folder with the shared one that it names; their bytes, 0 where it has none, or they
# are more than `room`.
def copied(folder, room):
    if not os.path.isfile(folder + "/index"):
        return 0
    with open(folder + "/index", "rb") as file:
        data = file.read(room + 1)
    named = {"sharedindex." + value.hex() for value in re.findall(rb"link(?=.{4}(.{20}))", data, re.S)}
    shared = [name for name in sorted(named & set(os.listdir(folder))) if os.path.isfile(folder + "/" + name)]
    size = len(data) + sum(os.path.getsize(folder + "/" + name) for name in shared)
    if size > room:
        return 0
    for name in ("index", *shared):
        shutil.copyfile(folder + "/" + name, own + "/" + name)
    return size

# What is staged in any working tree: mode, hash and path of each file. An index that cannot be read, or for
# which no room or time is left, has none.
def staged():
    worktrees, room, end = dot + "/worktrees", MAX_INDEXES, time.monotonic() + order["seconds"] / 4
    others = sorted(os.listdir(worktrees))[:20] if os.path.isdir(worktrees) else ()
    for folder in (dot, *(worktrees + "/" + name for name in others)):
        size, left = copied(folder, room), end - time.monotonic()
        room -= size
        for row in printed(("ls-files", "--stage", "-z"), left, []) if size and left > 0 else ():
            about, path = row.split(b"\t", 1)
            yield *about.split()[:2], path

# Hashes of what stood in files of secrets, what is staged and the newest first, each with one of its paths.
def secrets_of_history():
    pattern, asked, found = re.compile(order["secret"], re.I | re.S), {}, {}
    for kind, value, path in staged():
        if kind.startswith(b"100") and pattern.fullmatch(text(path)):
            found.setdefault(value, path)
    for (old_mode, mode, old, new, *_), path in rows_of_history(order["tips"]) if order["tips"] else ():
        if path not in asked:
            asked[path] = pattern.fullmatch(text(path)) is not None
        for kind, value in ((mode, new), (old_mode, old)) if asked[path] else ():
            if kind.startswith(b"100"):
                found.setdefault(value, path)
    return dict(list(found.items())[: order["most"]])

if "tips" in order:
    room, named, small = order["room"], secrets_of_history(), []
    listed = git("cat-file", "--batch-check", given=b"".join(value + b"\n" for value in named))
    for line in listed.splitlines():
        value, *about = line.split()
        if about[0] == b"blob" and int(about[1]) <= min(order["bytes"], room):
            room -= int(about[1])
            small.append((value, int(about[1])))
    files, data = [], git("cat-file", "--batch", given=b"".join(value + b"\n" for value, _ in small))
    for value, size in small:
        at = data.index(b"\n") + 1
        files.append([text(named[value]), base64.b64encode(data[at : at + size]).decode()])
        data = data[at + size + 1 :]
    json.dump({"files": files}, sys.stdout)
    sys.exit()
if "push" in order:
    wanted, old = order["push"], order["old"]
    known = "".join(value + "\n" for value in [wanted, old or wanted, *order["known"]]).encode()
    kinds = [line.split()[1:2] for line in git("cat-file", "--batch-check", given=known).splitlines()]
    if kinds[0] != [b"commit"]:
        stop("missing", "%s is no commit of the workspace" % wanted)
    if kinds[1] != [b"commit"]:
        stop("behind", "the branch there is at %s, which the workspace does not have" % old, "fetch it first")
    if old and git("rev-list", "--max-count=1", old, "--not", wanted, "--"):
        stop("behind", "the branch there has commits that %s lacks" % wanted, "merge them first")
    there = [value for value, kind in zip(order["known"], kinds[2:]) if kind == [b"commit"]]
    tips = [wanted, *("^" + value for value in there)]
    count = int(git("rev-list", "--count", "--stdin", given="".join(tip + "\n" for tip in tips).encode()))
    if count > order["commits"]:
        stop("size", "%d commits are new, at most %d can be" % (count, order["commits"]))
    pattern = re.compile(order["secret"], re.I | re.S)
    secret = [text(path) for _, path in rows_of_history(tips, True) if pattern.fullmatch(text(path))]
    if secret:
        stop("secret", "a new commit holds or held %s, a file of secrets" % ascii(secret[0]),
             "take it out of every commit that goes out")
    data = git("pack-objects", "--revs", "--stdout", "-q", "--threads=1",
               given="".join(tip + "\n" for tip in tips).encode())
    if len(data) > order["bytes"]:
        stop("size", "the pack has %d bytes, at most %d are sent" % (len(data), order["bytes"]))
    json.dump({"commits": count, "pack": base64.b64encode(data).decode()}, sys.stdout)
    sys.exit()
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
