"""The port onto a real machine: processes, files and git of one run. It decides nothing."""

import asyncio
import os
import time

from fakes.coordinators.reference.config import Config
from fakes.coordinators.reference.git import Git
from fakes.coordinators.reference.ports import Port, Worker
from fakes.coordinators.reference.processes import Processes
from fakes.coordinators.reference.store import Store


class PosixPort(Processes, Store, Git):
    """One run's world, from its configuration."""

    def __init__(self, config: Config) -> None:
        Processes.__init__(self)
        Store.__init__(self, config)
        Git.__init__(self, config.repo, config.origin, config.base)

    def now(self) -> float:
        """CLOCK_MONOTONIC, which on one machine outlives a coordinator."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def spawn(self, task: str, attempt: int, branch: str, worktree: str) -> Worker:
        """Start a worker and write its manifest line before anything else can happen."""
        config = self._config
        env = {
            **os.environ,
            "STOPDRILL_EVENTS": config.events,
            "STOPDRILL_CONTROL": config.control,
            **config.env,
            "STOPDRILL_PLAN": self.plan_file(),
            "RUN_ID": config.run,
            "TASK_ID": task,
            "ATTEMPT": str(attempt),
        }
        argv = [*config.worker, "--run", config.run, "--task", task]
        log = os.path.join(config.logs, f"worker-{task}-{attempt}.txt")
        worker = Worker(task, attempt, self.launch(argv, env, worktree, log), branch, worktree)
        self.log_worker(worker)
        return worker


def _is_a_port(port: PosixPort) -> Port:
    """Checked by the type checker: the class keeps the whole protocol."""
    return port
