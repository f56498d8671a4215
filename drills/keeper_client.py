"""The driver's side of the keeper: start it, ask it, and learn at once when it is no longer there.

Every call is bounded, and says on expiry what it waited for and where the evidence is. A run without its
keeper has no truth about processes, so `dead` is resolved (with a sentence) as soon as the keeper is gone or
says that it cannot go on; the driver then ends the drill as broken. By then nothing of the run is alive: the
keeper has killed it, or the warden has, or, when both died in one instant, this client through the run's own
cgroup.

Not done here: any look at processes. What is alive is what the keeper says.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

PROGRAM = Path(__file__).with_name("keeper") / "__main__.py"

T = TypeVar("T")
Role = Literal["coordinator", "run", "service"]

START_S = 15.0
ANSWER_S = 10.0
END_S = 12.0  # the keeper's own bound is 4 s
CLEANUP_S = 5.0  # for the warden to kill what a dead keeper left (its own bound is 4 s)
_LINE_MAX = 64 << 20


class KeeperError(Exception):
    """The keeper refused, did not answer in time, or is dead; the text says which, and where to look."""


@dataclass(frozen=True)
class Watching:
    """How processes are watched in this run, as `keeper.begin` has it."""

    pid: int
    subreaper: bool
    cgroup: str | None
    cgroup_why: str
    exit_info: bool
    scan_s: float
    uid: int


@dataclass(frozen=True)
class Spawned:
    """A process that the keeper started; `proc` is the keeper's number for it."""

    name: str
    pid: int
    proc: int


@dataclass(frozen=True)
class Exit:
    """How a spawned process ended: `status` or `signal`, the other one None."""

    name: str
    proc: int
    pid: int
    status: int | None
    signal: int | None


@dataclass(frozen=True)
class Alive:
    """A living process of the run, as an audit found it."""

    proc: int
    pid: int
    role: str
    cmdline: tuple[str, ...]
    task: str | None
    state: str


def _copy_of_stderr() -> tuple[int, ...]:
    """A descriptor of our stderr to hand on, or none when it is closed."""
    try:
        return (os.dup(2),)
    except OSError:
        return ()


class KeeperClient:
    """A running keeper. Make one with `await KeeperClient.start(…)`; end it with `await client.end(why)`.

    `dead` resolves to a sentence when the keeper is gone, or in trouble, without having been told to end.
    `on_exit` is called with the `Exit` of each spawned process, in the event loop.
    """

    def __init__(self, process: asyncio.subprocess.Process, events_dir: Path, log: Path) -> None:
        loop = asyncio.get_running_loop()
        self.dead: asyncio.Future[str] = loop.create_future()
        self.on_exit: Callable[[Exit], None] | None = None
        self.watching: Watching | None = None
        self._process = process
        self._evidence = f"see {events_dir / 'keeper.jsonl'} and {log}"
        self._ready: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._exits: dict[int, asyncio.Future[Exit]] = {}
        self._spawned: dict[str, Spawned] = {}
        self._last_id = 0
        self._ending = False
        self._trouble: str | None = None
        self._reader = asyncio.create_task(self._read(), name="keeper reader")

    @classmethod
    async def start(
        cls,
        run: str,
        events_dir: Path,
        *,
        log: Path,
        worktrees: Path | None = None,
        use_cgroup: bool = True,
        start_s: float = START_S,
    ) -> Self:
        """Start warden and keeper, and wait until it watches. `log` takes what they write to stderr.

        `worktrees` is the folder whose sub-folders are named after tasks. Raises KeeperError.
        """
        arguments = ["--run", run, "--events", str(events_dir)]
        if worktrees is not None:
            arguments += ["--worktrees", str(worktrees)]
        if not use_cgroup:
            arguments.append("--no-cgroup")
        # The keeper's own copy of our stderr: if we are killed, it is the only one left who can say what happened.
        tell = _copy_of_stderr()
        arguments += [word for fd in tell for word in ("--tell", str(fd))]
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-E", str(PROGRAM), *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={},  # nothing of the user's environment may show in /proc below the keeper
                start_new_session=True,  # a Ctrl-C is the driver's to handle; the keeper ends last
                limit=_LINE_MAX,
                pass_fds=tell,
            )
        for fd in tell:
            os.close(fd)
        client = cls(process, events_dir, log)
        try:
            facts = await client._within(client._ready, start_s, "the keeper to start watching")
        except BaseException:
            await client._stop()
            raise
        client.watching = Watching(**facts)
        return client

    async def spawn(
        self,
        name: str,
        role: Role,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdout: Path,
        stderr: Path,
    ) -> Spawned:
        """Start a program below the keeper, in a session of its own. Raises KeeperError when it cannot."""
        answer = await self._ask(
            f"{name} to be started",
            do="spawn",
            name=name,
            role=role,
            argv=list(argv),
            env=dict(env),
            cwd=str(cwd),
            stdout=str(stdout),
            stderr=str(stderr),
        )
        spawned = Spawned(name, answer["pid"], answer["proc"])
        self._spawned[name] = spawned
        self._exit_of(spawned.proc)
        return spawned

    async def audit(self, when: str) -> None:
        """Have everything of the run that is alive now, zombies left out, written to the history as `audit`."""
        await self._ask(f"the audit {when!r}", do="audit", when=when, details=False)

    async def alive(self, when: str) -> list[Alive]:
        """An audit, and what it found."""
        answer = await self._ask(f"the audit {when!r}", do="audit", when=when, details=True)
        return [
            Alive(p["proc"], p["pid"], p["role"], tuple(p["cmdline"]), p["task"], p["state"]) for p in answer["alive"]
        ]

    async def signal(self, proc: int, number: int) -> None:
        """Signal one process that the keeper knows, through its pidfd. Raises KeeperError when it is gone."""
        await self._ask(f"signal {number} to process number {proc}", do="signal", proc=proc, signal=number)

    async def wait_exit(self, name: str, within_s: float) -> Exit:
        """The end of the process last spawned under this name. Raises KeeperError when it lives on."""
        if name not in self._spawned:
            raise KeeperError(f"nothing was spawned under the name {name!r}")
        waiting = self._exit_of(self._spawned[name].proc)
        # Shielded, because others may wait for the same exit, and a second wait must find it too.
        return await self._within(asyncio.shield(waiting), within_s, f"{name} to end")

    async def end(self, why: str) -> list[dict[str, Any]]:
        """End the run: kill all of it, dismiss the services; what would not die (proc, pid, cmdline).

        Idempotent; on a keeper that is dead already it only waits for the warden. Raises KeeperError on
        expiry.
        """
        if self._ending or self.dead.done():
            await self._stop()
            return []
        self._ending = True
        try:
            answer = await self._ask("the run to be ended", END_S, do="end", why=why)
            left: list[dict[str, Any]] = answer["left"]
            return left
        finally:
            await self._stop()

    # The wire

    async def _ask(self, what: str, within_s: float = ANSWER_S, **command: object) -> dict[str, Any]:
        if self.dead.done():
            raise KeeperError(self.dead.result())
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        line = json.dumps({"id": number, **command}).encode() + b"\n"
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(line)  # a broken pipe shows as the end of its stdout
            got = await self._within(answer, within_s, what)
        finally:
            self._answers.pop(number, None)
        if not got["ok"]:
            raise KeeperError(f"{got['error']} ({self._evidence})")
        return got

    async def _within(self, future: asyncio.Future[T], within_s: float, what: str) -> T:
        try:
            # Not wait_for: before Python 3.12 it swallows a cancellation that comes in the instant of the result.
            async with asyncio.timeout(within_s):
                return await future
        except TimeoutError:
            raise KeeperError(f"waited {within_s:g} s for {what}; {self._evidence}") from None

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            async for line in self._process.stdout:
                self._take(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            self._trouble = f"the keeper wrote what is no message: {error}"
        await self._gone()

    def _take(self, message: dict[str, Any]) -> None:
        match message.pop("event", None):
            case None:
                answer = self._answers.get(message["id"])
                if answer is not None and not answer.done():
                    answer.set_result(message)
            case "ready":
                if not self._ready.done():
                    self._ready.set_result(message)
            case "exit":
                ended = Exit(**message)
                self._exit_of(ended.proc).set_result(ended)
                if self.on_exit is not None:
                    asyncio.get_running_loop().call_soon(self.on_exit, ended)
            case "trouble":
                self._trouble = message["why"]

    def _exit_of(self, proc: int) -> asyncio.Future[Exit]:
        if proc not in self._exits:
            self._exits[proc] = asyncio.get_running_loop().create_future()
        return self._exits[proc]

    async def _gone(self) -> None:
        """The keeper's pipe is closed: wait for the warden, then tell everybody who waits."""
        status = await self._await_warden()
        if self._trouble is not None:
            why = f"the keeper ended the run: {self._trouble}"
        elif self._ending:
            why = "the keeper has ended the run, as it was told"
        else:
            why = f"the keeper died; its warden {status}"
        error = KeeperError(f"{why} ({self._evidence})")
        waiting: list[asyncio.Future[Any]] = [self._ready, *self._answers.values(), *self._exits.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(error)
                future.exception()  # mark it as seen, because nobody may be waiting for this one
        if not self.dead.done() and not self._ending:
            self.dead.set_result(str(error))

    async def _await_warden(self) -> str:
        try:
            async with asyncio.timeout(CLEANUP_S):
                code = await self._process.wait()
        except TimeoutError:
            return f"had not finished cleaning up {CLEANUP_S:g} s later"
        if code < 0:
            await self._last_resort()
        return f"ended with {code}"

    async def _last_resort(self) -> None:
        """Warden and keeper were both killed: end the run through its cgroup, which holds nothing else."""
        if self.watching is None or self.watching.cgroup is None:
            return
        deadline = asyncio.get_running_loop().time() + CLEANUP_S
        while not _remove_killing(Path(self.watching.cgroup)):
            if asyncio.get_running_loop().time() > deadline:
                return  # whoever waits is told of the dead keeper; there is nothing more to try
            await asyncio.sleep(0.01)

    async def _stop(self) -> None:
        """Close the keeper's stdin, which ends it whatever it was doing, and wait for warden and reader."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(CLEANUP_S + ANSWER_S):
                await asyncio.shield(self._reader)
        except TimeoutError:
            self._reader.cancel()
            if self._process.returncode is None:
                self._process.terminate()  # the warden bounds a keeper that is stuck
            raise KeeperError(f"the keeper did not end; {self._evidence}") from None


def _remove_killing(group: Path) -> bool:
    """Kill what is in a cgroup and remove it; False while it is still emptying itself."""
    try:
        (group / "cgroup.kill").write_text("1")
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
