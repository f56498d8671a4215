"""Workers whose git state is not what a boundary promises."""

from fakes.worker.hooks import Hooks
from fakes.worker.loop import Worker
from fakes.worker.tool import end_line


class NoWip(Hooks):
    """Never commits."""

    def checkpoint(self, worker: Worker, step: int) -> bool:
        self.sets_in(worker)
        return True


class Stashes(Hooks):
    """Stashes instead of committing: the work is kept, but on no branch."""

    def checkpoint(self, worker: Worker, step: int) -> bool:
        self.sets_in(worker)
        status = worker.git.run("stash", "push", "-q", "-u", "-m", f"wip: {worker.task} {step}")
        if status:
            worker.note(f"git stash failed with status {status}")
        return True


class DirtyAtBoundary(Hooks):
    """Touches the file again after the commit. It keeps its end line: it is dirty, but not half-written."""

    at_step: int

    def after_checkpoint(self, worker: Worker, step: int, path: str) -> None:
        if step < self.at_step:
            return
        self.sets_in(worker)
        with open(path, "ab") as file:
            file.write(end_line(worker.task, step))


class PushesToMain(Hooks):
    """Pushes to main once, after the first call from `at_step` on that changed a file; refused, goes on."""

    at_step: int

    def __init__(self) -> None:
        super().__init__()
        self._done = False

    def after_checkpoint(self, worker: Worker, step: int, path: str) -> None:
        if step < self.at_step or self._done:
            return
        self._done = True
        self.sets_in(worker)
        status = worker.git.push("HEAD:main")
        worker.note(f"git push origin HEAD:main ended with status {status}")
