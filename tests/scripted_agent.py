"""An agent for tests: asks its model what to do, does it with shell commands, and says what came of it.

The model's answers are shell commands as text; `stop` ends it. It speaks the Messages API, unstreamed.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps({"model": "claude-haiku-4-5", "max_tokens": 100, "messages": messages}).encode(),
        {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]},
    )
    try:
        answer = json.loads(urllib.request.urlopen(request).read())
    except urllib.error.HTTPError as error:
        print("refused:", json.loads(error.read())["error"]["message"], flush=True)
        sys.exit(3)
    command = answer["content"][0]["text"]
    if command == "stop":
        print("the agent is done", flush=True)
        sys.exit(int(answer.get("exit", 0)))
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True)
    messages.append({"role": "assistant", "content": command})
    messages.append({"role": "user", "content": f"{done.stdout}{done.stderr}exit {done.returncode}"})
