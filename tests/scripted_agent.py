"""An agent for tests: asks its model what to do, does it with shell commands, and says what came of it.

The model's answers are shell commands as text; `stop` ends it. It speaks the Messages API, unstreamed. With
`--times` it says how many milliseconds it waited for each answer, and asks without what was said before.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

times = []
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps({"model": "claude-haiku-4-5", "max_tokens": 100, "messages": messages}).encode(),
        {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]},
    )
    began = time.perf_counter()
    try:
        with urllib.request.urlopen(request) as reply:
            data = reply.read(1)
            times.append(1000 * (time.perf_counter() - began))
            answer = json.loads(data + reply.read())
    except urllib.error.HTTPError as error:
        print("refused:", json.loads(error.read())["error"]["message"], flush=True)
        sys.exit(3)
    command = answer["content"][0]["text"]
    if command == "stop":
        print("times", json.dumps(times) if "--times" in sys.argv else len(times), flush=True)
        print("the agent is done", flush=True)
        sys.exit(int(answer.get("exit", 0)))
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, errors="replace")
    messages = messages[:1] if "--times" in sys.argv else messages
    messages.append({"role": "assistant", "content": command})
    messages.append({"role": "user", "content": f"{done.stdout}{done.stderr}exit {done.returncode}"})
