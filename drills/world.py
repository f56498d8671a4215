"""The world of one run: one directory that holds the repo, the origin, the plan, the control folder and all evidence.

    RUN/  drill.toml subject.json environment.json manifest.jsonl events/ git/ scorecard.json report.html junit.xml
    RUN/world/  origin.git/ repo/ worktrees/ control/ home/ tmp/ logs/ plan.json config.json

The repo is a generated sample or a throwaway clone of the user's own, which is only ever read. Nothing here starts a
process of the run; see `drills.conduct`.
"""

import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import git

import fakes
from drills.errors import HarnessTrouble, UsageProblem
from drills.script import Calls, Drill, Instruction
from fakes import origin, sample_repo

_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "TERM")
"""The only variables of the user's that a subject is given: none of them holds a secret."""


@dataclass(frozen=True)
class World:
    """Paths and identities of one run. `base` is the sha that all branches start from."""

    run_id: str
    run_dir: Path
    token: str
    base: str
    tasks: Mapping[str, Mapping[str, Any]]

    @property
    def root(self) -> Path:
        """Everything of the run that is not evidence in itself."""
        return self.run_dir / "world"

    @property
    def events(self) -> Path:
        """The event files, one for each source."""
        return self.run_dir / "events"

    @property
    def repo(self) -> Path:
        """The coordinator's clone; worktrees hang on it."""
        return self.root / "repo"

    @property
    def origin(self) -> Path:
        """The bare origin, protected by hooks."""
        return self.root / "origin.git"

    @property
    def worktrees(self) -> Path:
        """One folder for each task."""
        return self.root / "worktrees"

    @property
    def control(self) -> Path:
        """The control directory of the reference coordinator and the simulated workers."""
        return self.root / "control"

    @property
    def bin(self) -> Path:
        """Programs that stand first in the subject's PATH: the shims, where there are some."""
        return self.root / "bin"

    @property
    def plan(self) -> Path:
        """What the workers are to do."""
        return self.root / "plan.json"

    @property
    def config(self) -> Path:
        """What the bundled coordinators need to know."""
        return self.root / "config.json"

    @property
    def manifest(self) -> Path:
        """JSON lines, one for each worker at spawn, written by the subject."""
        return self.run_dir / "manifest.jsonl"

    @property
    def port_file(self) -> Path:
        """Where the model provider says which port it listens on."""
        return self.root / "provider.json"

    @property
    def branch_prefix(self) -> str:
        """`agent/<run>/`: followed by the task id."""
        return f"agent/{self.run_id}/"

    def mark(self, kind: str, n: object) -> str:
        """A string that can be recognised wherever it turns up, in a model request above all."""
        return f"[[{kind}-{self.run_id}.{n}]]"

    def environment(self) -> dict[str, str]:
        """The scrubbed environment of everything in the run."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            **kept,
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(self.root / "home" / ".gitconfig"),
            "GIT_TERMINAL_PROMPT": "0",
            "RUN_ID": self.run_id,
            "STOPDRILL_EVENTS": str(self.events),
            "STOPDRILL_CONTROL": str(self.control),
            "STOPDRILL_PLAN": str(self.plan),
            "STOPDRILL_TOKEN": self.token,
        }


def worker_argv() -> tuple[str, ...]:
    """The command line of a simulated worker, to which `--run RUN --task TASK` is added."""
    program = Path(fakes.__file__).parent / "worker" / "__main__.py"
    return (sys.executable, "-I", "-S", "-E", str(program))


def new_run_id() -> str:
    """A run id that sorts by time and does not clash: `r20261130-210500-a1b2`."""
    return f"r{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def create(drill: Drill, out: Path, repo: Path | None = None) -> World:
    """Build the world of a new run below `out`. Raises UsageProblem for a folder or repo that can't be used."""
    run_id = new_run_id()
    run_dir = out.absolute() / run_id
    if sys.platform != "linux":
        raise UsageProblem(
            f"a drill needs Linux (pidfds, child subreapers, /proc), and this is {sys.platform};"
            " `stopdrill score` and `stopdrill report` work on stored bundles anywhere"
        )
    git_version()
    try:
        for name in ("events", "git", "world/worktrees", "world/home", "world/tmp", "world/logs"):
            (run_dir / name).mkdir(parents=True)
        for name in ("tasks", "status", "requests", "replies"):
            (run_dir / "world/control" / name).mkdir(parents=True)
        (run_dir / "world/home/.gitconfig").write_text(_GITCONFIG)
        return _furnish(drill, run_id, run_dir, repo)
    except origin.RepoError as error:
        shutil.rmtree(run_dir, ignore_errors=True)  # nothing has happened in it yet
        raise UsageProblem(str(error)) from None
    except OSError as error:
        raise UsageProblem(
            f"{run_dir}: the run directory cannot be made: {error}. Choose another with --out."
        ) from None


_GITCONFIG = """\
[user]
	name = simulated worker
	email = worker@stopdrill.invalid
[gc]
	auto = 0
[maintenance]
	auto = false
[commit]
	gpgsign = false
[core]
	fsync = none
[advice]
	detachedHead = false
[init]
	defaultBranch = main
[safe]
	directory = *
"""


def git_version() -> str:
    """git's version; HarnessTrouble with the remedy when there is no git."""
    if shutil.which("git") is None:
        raise HarnessTrouble("git is not on PATH; a drill needs git 2.34 or later. Install it and try again.")
    return ".".join(map(str, git.Git().version_info))


def _furnish(drill: Drill, run_id: str, run_dir: Path, repo: Path | None) -> World:
    """Origin, clone, plan. The hooks are armed last, so that setting up is not logged as a push."""
    root = run_dir / "world"
    bare = root / "origin.git"
    if repo is None:
        source = root / "sample"
        sample_repo.generate(source, packages=max(16, drill.fleet.workers))
        origin.copy_head(bare, source)
        shutil.rmtree(source)
    else:
        sample_repo.clone_user_repo(repo, bare)
    clone = git.Repo.clone_from(bare.as_uri(), root / "repo", no_local=True)
    origin.install_hooks(bare, events=run_dir / "events")
    base = clone.head.commit.hexsha
    planned = drill.task_ids
    records = (
        sample_repo.tasks(max(16, drill.fleet.workers), len(planned))
        if repo is None
        else sample_repo.tasks_for_repo(root / "repo", len(planned))
    )
    clone.close()
    tasks = {
        name: {"title": record.title, "files": list(record.files)}
        for name, record in zip(planned, records, strict=True)
    }
    return World(run_id, run_dir, secrets.token_hex(16), base, tasks)


def plan(world: World, drill: Drill, misbehaviours: tuple[Mapping[str, Any], ...]) -> dict[str, Any]:
    """The content of plan.json, in real seconds. `misbehaviours` as in the drill file: task, name, parameters."""
    real = drill.real
    added = {
        add.task: {"title": add.title, "files": list(add.files or (f"packages/{add.task}/deps.lock",))}
        for step in drill.controls
        if step.instruction
        for add in step.instruction.adds
    }
    model = drill.fleet.model
    common = {
        "steps": drill.fleet.steps,
        "calls": _calls(drill.fleet.calls, drill),
        "child_share": drill.fleet.child_share,
        "readonly_share": drill.fleet.readonly_share,
        "push_every": drill.fleet.push_every,
        "model": {
            "tokens_in": model.tokens_in,
            "tokens_out": model.tokens_out,
            "latency_s": real(model.latency),
            "stream_s": real(model.stream),
            "chunks": model.chunks,
        },
    }

    def record(name: str, task: Mapping[str, Any]) -> dict[str, Any]:
        wrong = [
            {key: value for key, value in item.items() if key != "task"}
            for item in misbehaviours
            if item["task"] in ("*", name)
        ]
        return {**task, **common, "misbehaviours": wrong}

    return {
        "run": world.run_id,
        "seed": drill.seed,
        "base": "main",
        "longest_call_s": real(drill.longest_call),
        "grace_s": real(drill.abort.grace),
        "kill_after_s": real(drill.abort.kill_after),
        "poll_s": 0.01,
        "objective": {
            "text": f"Migrate every dependency of your package to the new major version. {world.mark('objective', 0)}",
            "mark": world.mark("objective", 0),
        },
        "tasks": {name: record(name, task) for name, task in world.tasks.items()},
        "adds": {name: record(name, task) for name, task in added.items()},
    }


def _calls(calls: Calls, drill: Drill) -> dict[str, Any]:
    real = drill.real
    return {
        "distribution": calls.distribution,
        "median_s": real(calls.median),
        "sigma": calls.sigma,
        "low_s": real(calls.low),
        "high_s": real(calls.high),
        "value_s": real(calls.value),
        "values_s": [real(value) for value in calls.values],
        "longest_s": real(calls.longest),
    }


def expected_table(drill: Drill, instruction: Instruction) -> dict[str, str]:
    """Task to keep, modify or drop, as the drill expects it for all planned tasks."""
    table = dict.fromkeys(drill.task_ids, "keep")
    for change in instruction.changes:
        table.update({task: "modify" for task in change.tasks if task in table})
    table.update({task: "drop" for task in instruction.drops if task in table})
    table.update({task: word for task, word in instruction.expect.items() if task in table})
    return table


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all: a reader never sees half of it."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
