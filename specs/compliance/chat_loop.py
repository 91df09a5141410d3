"""A plain chat loop as a runtime of the kit: the example of what fails, and the smallest one to start from.

    spak compliance --runtime python3 specs/compliance/chat_loop.py

It is written as such loops are, and fairly: it has a folder for each task, keeps its messages on disk before it
acts on them, gives errors back to the model, goes on where it was after a crash, and ends after a number of
turns. Its state is the list of messages and nothing else. It needs Python's standard library alone.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path


def send(line):
    print(json.dumps(line), flush=True)


class Chat:
    """The messages of one task, one a line on disk."""

    def __init__(self, command):
        self.log = Path(command["state"]) / command["task"] / "messages.jsonl"
        self.folder = self.log.parent / "work"
        self.messages = [json.loads(line) for line in self.log.open()] if self.log.exists() else []

    def add(self, role, content, **more):
        self.messages.append({"role": role, "content": content, **more})
        with self.log.open("a") as file:
            file.write(json.dumps(self.messages[-1]) + "\n")

    def ask(self):
        text = "\n".join(f"{message['role']}: {message['content']}" for message in self.messages)
        send({"ask": {"prompt": text, "registers": {}}})
        reply = json.loads(sys.stdin.readline())
        self.add("assistant", reply["answer"], tokens=sum(reply["usage"].values()))

    def account(self):
        answers = [message for message in self.messages if message["role"] == "assistant"]
        calls = [message for message in self.messages if message["role"] == "tool"]
        figures = {"asks": len(answers), "calls": len(calls), "tokens": sum(answer["tokens"] for answer in answers)}
        pending = None
        if self.messages and self.messages[-1]["role"] == "assistant":
            pending = {**json.loads(self.messages[-1]["content"]), "line": len(self.messages) - 1}
        summary = hashlib.sha256(json.dumps(self.messages).encode()).hexdigest()
        return {"summary": summary, "figures": figures, "pending": pending}


def call(tool, args, folder):
    """What the tool put out, and how it ended."""
    words = [str(args[word[1:-1]]) if word.startswith("{") else word for word in tool["argv"]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace")
    return done.stdout + done.stderr, done.returncode


def work(command):
    chat = Chat(command)
    if command["do"] == "begin":
        shutil.copytree(command["folder"], chat.folder, symlinks=True)
        tools = {name: [tool["summary"], tool["schema"]] for name, tool in command["tools"].items()}
        chat.add("system", f"{command['goal']} Answer with {{\"tool\", \"args\"}}. Tools: {json.dumps(tools)}")
    send({"begun": {"workspace": str(chat.folder), "log": str(chat.log)}})
    for _ in range(command["limits"]["steps"]):
        if chat.messages[-1]["role"] != "assistant":
            chat.ask()
        try:
            wanted = json.loads(chat.messages[-1]["content"])
            tool = command["tools"][wanted["tool"]]
            output, exit = call(tool, wanted["args"], chat.folder)
        except (ValueError, KeyError, TypeError) as error:
            chat.add("user", f"error: {error!r}")
            continue
        chat.add("tool", f"{wanted['tool']}: {output} (exit {exit})")
        if tool.get("ends"):
            return {"state": "succeeded", "code": "", **chat.account()}
    return {"state": "refused", "code": "STEP_BUDGET", "knob": "steps", **chat.account()}


for line in sys.stdin:
    order = json.loads(line)
    if order["do"] == "account":
        send({"account": Chat(order).account()})
    else:
        send({"end": work(order)})
