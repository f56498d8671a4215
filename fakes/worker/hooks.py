"""Where a misbehaviour can take hold of a worker. The base class does nothing: without hooks, it behaves.

The loop calls every hook point in the order of the plan's list. What each misbehaviour does stands in
`fakes.behaviours`; nothing here knows one by name.
"""

TYPE_CHECKING = False  # spares the import of `typing`
if TYPE_CHECKING:
    from fakes.worker.loop import Worker


class Hooks:
    """One misbehaviour at work. Its parameters are attributes, set from the plan before `begin`."""

    name = ""
    looks_away = False
    """True: the worker doesn't read its control files while this holds."""

    def __init__(self) -> None:
        self._told = False

    def sets_in(self, worker: "Worker") -> None:
        """Say once in the history that the misbehaviour has set in."""
        if not self._told:
            self._told = True
            worker.journal.write("misbehaves", task=worker.task, name=self.name)

    def check(self) -> None:
        """Raise ValueError when a parameter has no sense, after all of them were set."""

    def begin(self, worker: "Worker") -> None:
        """The worker has told that it begins, and has looked at nothing yet."""

    def before_step(self, worker: "Worker", step: int) -> None:
        """Before the model is asked about `step`."""

    def duration_s(self, worker: "Worker", step: int, planned_s: float) -> float:
        """How long the call of `step` takes."""
        return planned_s

    def checkpoint(self, worker: "Worker", step: int) -> bool:
        """In place of the wip commit; True when there shall be no commit."""
        return False

    def after_checkpoint(self, worker: "Worker", step: int, path: str) -> None:
        """After a call that changed `path`, and its checkpoint."""

    def resumed(self, worker: "Worker", step: int) -> int:
        """After a hold: the step to do next, which would be `step`."""
        return step

    def leaving(self, worker: "Worker", reason: str) -> None:
        """The worker was told to leave (stop or drop) and is about to."""
