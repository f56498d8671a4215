"""Workers that do not listen: to the control file, or to signals."""

import os
import signal
from types import FrameType

from fakes.worker.children import STOPS
from fakes.worker.hooks import Hooks
from fakes.worker.loop import Worker


class NeverLooks(Hooks):
    """Never reads its control files."""

    looks_away = True

    def begin(self, worker: Worker) -> None:
        self.sets_in(worker)


class IgnoresSigterm(Hooks):
    """Writes down the polite signals and goes on.

    They are logged because the history would otherwise not show whether SIGTERM was tried before the kill.
    """

    def begin(self, worker: Worker) -> None:
        def log(number: int, frame: FrameType | None) -> None:
            told = signal.Signals(number).name
            worker.journal.write("worker.signal", task=worker.task, pid=os.getpid(), signal=told)

        worker.child.deaf = True
        for number in STOPS:
            signal.signal(number, log)
        self.sets_in(worker)
