"""Recovery: what a coordinator does that finds the state of one before it.

The intent decides. `running`: adopt the workers of the manifest that live (pid and start time, through a
pidfd), and let the watch restart the dead ones from their checkpoints. `holding`: the same, and nobody is
started. `aborting` and `aborted`: the abort is finished, nobody is started. The manifest says who exists,
not the state file.
"""

from collections.abc import Mapping
from typing import Any

from fakes.coordinators.reference.core import (
    ABORTED,
    ABORTING,
    RUNNING,
    WAITING,
    WORDS,
    WORKING,
    AbortRecord,
    Core,
    Redirect,
    TaskRecord,
)
from fakes.coordinators.reference.plan import task_from


class Recovering(Core):
    """Begin a run, or take one over."""

    def begin(self) -> bool:
        """Read the store and show the intent; True when an abort has to be finished."""
        saved = self.port.load_state()
        if saved is None:
            self.declare(RUNNING)
            return False
        self.restore(saved)
        self.adopt()
        self.save()
        self.show(WORDS[self.intent])
        return self.intent in (ABORTING, ABORTED)

    def restore(self, saved: Mapping[str, Any]) -> None:
        """The state as it was written."""
        self.intent, self.started = saved["intent"], saved["started"]
        self.added = dict(saved["added"])
        everything = {**self.plan, **{name: task_from(name, spec) for name, spec in self.added.items()}}
        for name, was in saved["tasks"].items():
            self.tasks[name] = TaskRecord(everything[name], was["phase"], was["attempt"], error=was["error"])
        self.redirects = [Redirect(**redirect) for redirect in saved["redirects"]]
        if saved["abort"] is not None:
            self.abort_record = AbortRecord(**saved["abort"])

    def adopt(self) -> None:
        """Take hold of the living; take attempts from the manifest, which is written at the spawn itself."""
        self.workers = self.port.manifest()
        for worker in self.workers:
            self.port.adopt(worker.process)
            self.since[worker.process.pid] = self.port.now()
            record = self.tasks.get(worker.task)
            if record is not None and worker.attempt > record.attempt:
                record.attempt = worker.attempt
                record.phase = WORKING if record.phase == WAITING else record.phase
