"""The broker of a seed: messages that are lost, doubled and late, and consumers that call the real tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

from simulate.baton import Process, Scheduler


class Message(NamedTuple):
    """What was sent, and when it may be taken."""

    at: float
    number: int
    name: str
    args: tuple[Any, ...]


class Broker:
    """Stands for Celery's."""

    def __init__(self, scheduler: Scheduler, *, returns: bool) -> None:
        self.scheduler = scheduler
        self.returns = returns
        """Whether what a process had in hand comes back when it dies, or is lost with it."""
        self._waiting: list[Message] = []
        self._in_hand: dict[Process, list[Message]] = {}
        self._next: list[tuple[str, float]] = []
        self._numbers = 0
        self._deaf_until = 0.0
        self.sent = 0

    def next_is(self, kind: str, seconds: float) -> None:
        """What becomes of the next message."""
        self._next.append((kind, seconds))

    def flush(self, until: float) -> None:
        """All that wait are forgotten, and all that come before then."""
        self._waiting.clear()
        self._deaf_until = max(self._deaf_until, until)

    def send_task(self, name: str, args: tuple[Any, ...] = (), **options: Any) -> None:
        """As Celery's. Raises: OSError where the sender reaches no broker."""
        process = self.scheduler.process
        if process is not None and process.cut_until > self.scheduler.now:
            raise OSError("the broker is away")
        if self.scheduler.mine():
            self.scheduler.point("broker", "send")
        self.sent += 1
        if self._deaf_until > self.scheduler.now:
            return
        kind, seconds = self._next.pop(0) if self._next and name == "runs.advance" else ("", 0.0)
        if kind == "lost":
            return
        delay = seconds if kind == "late" else round(0.005 + self.scheduler.random.expovariate(20), 4)
        self._put(name, args, delay)
        if kind == "doubled":
            self._put(name, args, delay * self.scheduler.random.choice((1, 2, 10)))

    def _put(self, name: str, args: tuple[Any, ...], delay: float) -> None:
        self._numbers += 1
        self._waiting.append(Message(self.scheduler.now + delay, self._numbers, name, args))

    def take(self, process: Process) -> Message:
        """The oldest message that has come; waits for one."""
        while True:
            now = self.scheduler.now
            come = [message for message in self._waiting if message.at <= now]
            if come and process.cut_until <= now:
                message = min(come)
                self._waiting.remove(message)
                self._in_hand.setdefault(process, []).append(message)
                return message
            self.scheduler.wait(lambda: self._come(process), self._next_at(process) - now)

    def _come(self, process: Process) -> bool:
        now = self.scheduler.now
        return process.cut_until <= now and any(message.at <= now for message in self._waiting)

    def _next_at(self, process: Process) -> float:
        times = [message.at for message in self._waiting] or [self.scheduler.now + 60.0]
        return max(min(times), process.cut_until, self.scheduler.now + 0.001)

    def done(self, process: Process, message: Message) -> None:
        """It is used up."""
        self._in_hand[process].remove(message)

    def died(self, process: Process) -> None:
        """What the process had in hand comes again, or never."""
        for message in self._in_hand.pop(process, ()):
            if self.returns:
                self._put(message.name, message.args, 1.0)
