"""A run with three tasks in three worktrees, and shims on the PATH of everything that is started in it."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from drills import shims
from fakes.origin import git
from tests.fakes.test_worker import TOKEN, Yard


class ShimYard(Yard):
    """As `Yard`, whose tree `t01` works in stays where nothing but its branch says so; `t02` and `t03` have folders."""

    def __init__(self, root: Path, plan: dict[str, Any] | None = None, **task: object) -> None:
        super().__init__(root, **task)
        self.worktrees, self.bin = self.root / "worktrees", self.root / "bin"
        self.worktrees.mkdir()
        for name in ("t02", "t03"):
            git("worktree", "add", "-q", str(self.worktrees / name), "-b", f"agent/r1/{name}", cwd=self.root / "clone")
        path = self.root / "plan.json"
        whole = json.loads(path.read_text())
        mine = whole["tasks"]["t01"]
        whole["tasks"] |= {"t02": mine, "t03": mine}
        whole["adds"] = {"n01": mine}
        path.write_text(json.dumps(whole | (plan or {})), encoding="utf-8")
        shims.install(self.bin, (*shims.NAMES, "my agent"))

    def env(self, **more: str) -> dict[str, str]:
        """The environment of the subject."""
        return {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.root),
            "RUN_ID": "r1",
            "STOPDRILL_EVENTS": str(self.events),
            "STOPDRILL_CONTROL": str(self.control),
            "STOPDRILL_PROVIDER": self.provider,
            "STOPDRILL_TOKEN": TOKEN,
            "STOPDRILL_PLAN": str(self.root / "plan.json"),
        } | more

    def call(self, *words: str, cwd: Path | None = None, said: str | None = None, **more: str) -> subprocess.Popen[str]:
        """Start a program of the PATH in t02's worktree, or in `cwd`; `said` is on its standard input."""
        process = subprocess.Popen(
            words,
            cwd=cwd or self.worktrees / "t02",
            env=self.env(**more),
            stdin=subprocess.DEVNULL if said is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        if said is not None:
            assert process.stdin
            process.stdin.write(said)
            process.stdin.close()
            process.stdin = None
        return process

    def done(self, *words: str, status: int = 0, **more: Any) -> str:
        """Run a program to its end; what it printed."""
        process = self.call(*words, **more)
        out, err = process.communicate(timeout=30)
        assert process.returncode == status, err
        return out if status == 0 else err

    def told(self, kind: str, *keys: str) -> list[tuple[Any, ...]]:
        """These values of all events of a kind."""
        return [tuple(event.data[key] for key in keys) for event in self.events_of(kind)]

    def living(self) -> dict[int, str]:
        """Processes that stand anywhere in the yard; no zombies."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):  # it has ended while we looked
                    if (entry / "cwd").readlink().is_relative_to(self.root):
                        found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        return found

    def __enter__(self) -> "ShimYard":
        return self

    def __exit__(self, *why: object) -> None:
        for process in self._started:
            if process.stdout:
                process.send_signal(signal.SIGKILL)
                process.stdout.close()
        super().__exit__(*why)
