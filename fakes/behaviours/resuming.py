"""Workers that do not pick up where they were when a hold ends."""

from fakes.worker.hooks import Hooks
from fakes.worker.loop import Worker


class Repeats(Hooks):
    """Does the last step again."""

    def resumed(self, worker: Worker, step: int) -> int:
        if step <= 1:
            return step  # nothing has been done yet that could be repeated
        self.sets_in(worker)
        return step - 1


class Skips(Hooks):
    """Leaves one step out."""

    def resumed(self, worker: Worker, step: int) -> int:
        self.sets_in(worker)
        return step + 1
