"""The adapter: the only way in which a drill reaches a subject.

An adapter hands controls to the coordinator under test and brings its words back. It judges nothing and observes
nothing: what is true is seen from outside. Each method is awaited with a bound, in a thread and event loop of its own
(`drills.adapters.host`); one that raises, hangs or lies is a result of the drill, never a crash of it.

To write one: a class with `name`, `capabilities` and the async methods of `Adapter`. Controls that the subject lacks
are left out of `capabilities.controls`, and need no method body worth having: `BaseAdapter` has all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from drills.errors import HarnessTrouble

Scope = Literal["turn", "agent", "run"]
CONTROLS = ("pause", "resume", "redirect", "abort")


@dataclass(frozen=True)
class Capabilities:
    """What a subject can do: control name to the scope that it acts on. A control left out does not exist."""

    controls: Mapping[str, Scope] = field(default_factory=lambda: dict.fromkeys(CONTROLS, "run"))
    pause_means: Literal["quiesce", "hold"] = "quiesce"
    """quiesce: acknowledged when quiet; hold: acknowledged when no new work will start."""
    success_exit: tuple[int, ...] = (0,)
    """Exit statuses that claim success."""


@dataclass(frozen=True)
class Ack:
    """The subject's answer to a control: its own word, recorded as a claim.

    `state` is `paused`, `running`, `redirected`, `aborted` … when the subject claims that this is now true, and
    `accepted` when it only says that it has heard. `sweep` is its own list of what is left after an abort:
    `{"alive": [{"pid", "task"}], "dirty": [paths]}`, None when it made none. `question` is set when it asks
    something instead of acting.
    """

    state: str = "accepted"
    question: str | None = None
    sweep: Mapping[str, Any] | None = None
    changed: bool | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """The subject's keep/modify/drop table of the n-th redirect; `written_t` in CLOCK_MONOTONIC nanoseconds."""

    n: int
    tasks: Mapping[str, str]
    written_t: int


@dataclass(frozen=True)
class Claims:
    """What the subject says of itself so far. Empty or None: it does not say."""

    manifest: Sequence[Mapping[str, Any]] = ()
    """`run_id, task_id, attempt, pid, host, branch, worktree, started_at`, one for each worker at spawn."""
    killed: Sequence[Mapping[str, Any]] = ()
    stalled: Sequence[Mapping[str, Any]] = ()
    tables: Sequence[Table] = ()
    usage_tokens: int | None = None
    state: str | None = None


@dataclass(frozen=True)
class Redirect:
    """What the operator says at a redirect: the whole instruction, and paths that it touches."""

    n: int
    text: str
    changes: tuple[Mapping[str, Any], ...]
    drops: tuple[str, ...]
    adds: tuple[Mapping[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        """As it is handed to a subject that reads JSON."""
        return {
            "n": self.n,
            "text": self.text,
            "changes": [dict(change) for change in self.changes],
            "drops": list(self.drops),
            "adds": [dict(add) for add in self.adds],
        }


@dataclass(frozen=True)
class Spawned:
    """A process that the world started for an adapter."""

    pid: int
    proc: int


class Site(Protocol):
    """What an adapter is given: the world that its subject runs in."""

    run_id: str
    run_dir: Path
    repo: Path
    origin: Path
    worktrees: Path
    control: Path
    manifest: Path
    events: Path
    plan: Path
    config: Path
    worker_argv: tuple[str, ...]
    env: Mapping[str, str]

    async def spawn(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Spawned:
        """Start a process of the subject (the coordinator is named `coordinator`) under the keeper's eyes."""

    async def wait_exit(self, name: str, within_s: float) -> int | None:
        """Exit status of the process last spawned under a name, -n after signal n; None when it lives on."""

    async def signal(self, name: str, number: int) -> None:
        """Signal the process last spawned under a name, and no other. Raises HarnessTrouble when it has ended."""

    def log(self, name: str) -> Path:
        """Where a process spawned under this name writes stdout and stderr."""

    def real(self, drill_seconds: float) -> float:
        """Real seconds of a drill duration."""

    def delivered(self) -> None:
        """Say that the control at hand has reached the subject: the time until here is the harness's, not its."""

    def misbehave(self, task: str, name: str, **parameters: Any) -> None:
        """Add a scripted misbehaviour of a simulated worker; to be called before `write_plan`."""

    def install_shims(self, names: Sequence[str]) -> None:
        """Put simulated workers with these names in front of the subject's PATH, besides those of the known CLIs."""

    def write_plan(self) -> None:
        """Write plan.json for the simulated workers, and config.json for the bundled coordinators."""


class Adapter(Protocol):
    """See the module's docstring. `start` returns when the subject has been told to start all tasks."""

    name: str
    capabilities: Capabilities

    async def start(self, site: Site) -> None: ...
    async def pause(self) -> Ack: ...
    async def resume(self) -> Ack: ...
    async def redirect(self, instruction: Redirect) -> Ack: ...
    async def abort(self) -> Ack: ...
    async def answer(self, text: str) -> Ack: ...
    async def claims(self) -> Claims: ...
    async def restart(self) -> None: ...
    async def close(self) -> None: ...


class BaseAdapter:
    """An adapter without any control: subclasses add what their subject has."""

    name = "unnamed"
    capabilities = Capabilities(controls={})

    async def start(self, site: Site) -> None:
        """Start the subject and all its tasks."""
        raise HarnessTrouble(f"the adapter {self.name} does not say how its subject is started")

    async def pause(self) -> Ack:
        """Never called unless declared in `capabilities`."""
        raise HarnessTrouble(f"the adapter {self.name} declares pause and does not implement it")

    async def resume(self) -> Ack:
        """Never called unless declared in `capabilities`."""
        raise HarnessTrouble(f"the adapter {self.name} declares resume and does not implement it")

    async def redirect(self, instruction: Redirect) -> Ack:
        """Never called unless declared in `capabilities`."""
        raise HarnessTrouble(f"the adapter {self.name} declares redirect and does not implement it")

    async def abort(self) -> Ack:
        """Never called unless declared in `capabilities`."""
        raise HarnessTrouble(f"the adapter {self.name} declares abort and does not implement it")

    async def answer(self, text: str) -> Ack:
        """Answer a question that the subject asked instead of acting."""
        raise HarnessTrouble(f"the adapter {self.name} passed on a question and cannot answer it")

    async def claims(self) -> Claims:
        """What the subject says of itself."""
        return Claims()

    async def restart(self) -> None:
        """Start the coordinator again after the drill killed it."""
        raise HarnessTrouble(f"the adapter {self.name} does not say how its coordinator is restarted")

    async def close(self) -> None:
        """Let go of the subject; what is left of it is ended by the keeper."""
