"""A world in memory for the reference coordinator: workers as small state machines, and a clock that jumps.

`VirtualLoop` is an asyncio loop that never waits: when nothing is ready it moves its clock to the next
timer. `Memory` is a port over it that writes down every act with its instant, so that a test can assert
order and times exactly.
"""

import asyncio
import json
import selectors
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fakes.coordinators.reference.ports import PortError, Process, Status, Worker


class _Jumping(selectors.SelectSelector):
    """A selector that advances the clock instead of waiting."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("the virtual world is dead: nothing is ready and no timer is set")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time is virtual."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


@dataclass
class Life:
    """One simulated worker: calls of `call_s` one after another, looking at the control file after each."""

    worker: Worker
    call_s: float
    deaf: bool = False
    alive: bool = True
    stopped: bool = False
    steps: int = 400
    consumed: int = 0


@dataclass
class Memory:
    """The port. `acts` is the log: (seconds since the world began, what, …)."""

    call_s: float = 0.2
    acts: list[tuple[Any, ...]] = field(default_factory=list)
    word: str = "RUN"
    messages: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    statuses: dict[str, Status] = field(default_factory=dict)
    lines: list[Worker] = field(default_factory=list)
    lives: dict[Process, Life] = field(default_factory=dict)
    state: dict[str, Any] | None = None
    killed_pids: list[int] = field(default_factory=list)
    deaf: frozenset[str] = frozenset()
    steps: Mapping[str, int] = field(default_factory=dict)
    git_s: float = 0.0
    broken_git: bool = False
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def note(self, *act: Any) -> None:
        self.acts.append((round(self.now() - 1000.0, 3), *act))

    def did(self, what: str) -> list[tuple[Any, ...]]:
        return [act for act in self.acts if act[1] == what]

    # Processes.

    def spawn(self, task: str, attempt: int, branch: str, worktree: str) -> Worker:
        pid = 100 + len(self.lines)
        worker = Worker(task, attempt, Process(pid, pid), branch, worktree)
        self.lines.append(worker)
        life = Life(worker, self.call_s, deaf=task in self.deaf, steps=self.steps.get(task, 400))
        self.lives[worker.process] = life
        self.note("spawn", task, attempt)
        running = asyncio.create_task(self._live(life))
        self._tasks.add(running)
        return worker

    async def _live(self, life: Life) -> None:
        step = 0
        while step < life.steps:
            step += 1
            await asyncio.sleep(life.call_s)
            if not self.alive(life.worker.process):
                return
            self._say(life, "working", step, "boundary")
            while not life.deaf and life.alive and self._held(life):
                self._say(life, "parked", step, "hold")
                await asyncio.sleep(0.01)
            reason = "" if life.deaf else self._told(life)
            if reason:
                self.end(life, step, reason)
                return
            if life.alive:
                self._say(life, "working", step, "unparked")
        if life.alive:
            self.end(life, step, "done")

    async def finish(self) -> None:
        """The end of the world: every worker that still lives is gone."""
        for running in self._tasks:
            running.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _held(self, life: Life) -> bool:
        return self.word == "HOLD" and not self._told(life)

    def _told(self, life: Life) -> str:
        if self.word == "STOP":
            return "stop"
        kinds = [message["kind"] for message in self.messages.get(life.worker.task, [])]
        return "drop" if "drop" in kinds else ""

    def _say(self, life: Life, state: str, step: int, reason: str) -> None:
        worker = life.worker
        self.statuses[worker.task] = Status(worker.attempt, worker.process.pid, state, step, reason, self.now())

    def end(self, life: Life, step: int, reason: str) -> None:
        life.alive = False
        if reason != "killed":
            self._say(life, "ended", step, reason)
        self.note("end", life.worker.task, reason)

    def adopt(self, process: Process) -> bool:
        return self.alive(process)

    def alive(self, process: Process) -> bool:
        return process in self.lives and self.lives[process].alive

    def signal(self, process: Process, name: str) -> bool:
        life = self.lives[process]
        self.note(name, life.worker.task)
        if name == "SIGKILL" or not life.deaf:
            self.end(life, 0, "killed")
        return True

    def descendants(self, process: Process) -> tuple[Process, ...]:
        return ()

    # Control directory and store.

    def control(self, word: str) -> None:
        self.word = word
        self.note("control", word)

    def post(self, task: str, kind: str, text: str, key: str) -> None:
        mine = self.messages.setdefault(task, [])
        if all(message["key"] != key for message in mine):
            mine.append({"kind": kind, "text": text, "key": key})
            self.note("post", task, kind, text)

    def status(self, task: str) -> Status | None:
        return self.statuses.get(task)

    def manifest(self) -> list[Worker]:
        return list(self.lines)

    def save_state(self, state: Mapping[str, Any]) -> None:
        fresh: dict[str, Any] = json.loads(json.dumps(state))
        if self.state is None or self.state["intent"] != fresh["intent"]:
            self.note("intent", fresh["intent"])
        self.state = fresh

    def load_state(self) -> dict[str, Any] | None:
        return self.state

    def save_table(self, n: int, tasks: Mapping[str, str], new: tuple[str, ...]) -> None:
        self.note("table", n, dict(tasks), new)

    def save_plan(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        self.note("plan", tuple(added))

    def log_killed(self, worker: Worker, process: Process, files: list[str]) -> None:
        self.killed_pids.append(process.pid)
        self.note("killed dirty", worker.task, worker.branch, tuple(files))

    def killed(self) -> list[int]:
        return self.killed_pids

    def log_stalled(self, worker: Worker, last_step: int) -> None:
        self.note("stalled", worker.task, last_step)

    def save_pr(self, task: str, record: Mapping[str, str]) -> None:
        self.note("pr", task)

    # Git.

    async def _git(self, *act: Any) -> None:
        await asyncio.sleep(self.git_s)
        if self.broken_git:
            raise PortError("git: the disk is on fire")
        self.note(*act)

    async def add_worktree(self, branch: str, worktree: str) -> None:
        await self._git("worktree", branch)

    async def tag(self, name: str, branch: str) -> None:
        await self._git("tag", name, branch)

    async def squash(self, branch: str, onto: str, message: str) -> str:
        await self._git("squash", branch, onto)
        return "sha"

    async def push(self, ref: str) -> None:
        await self._git("push", ref)

    async def dirty_files(self, worktree: str) -> list[str] | None:
        return ["half.txt"] if any(task in worktree for task in self.deaf) else []
