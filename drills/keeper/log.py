"""The keeper's journal, with one difference: it remembers that writing failed instead of raising.

Events are written from many places, some in the middle of killing a run. A full disk must end the run in an
orderly way (the keeper must not go on blind), so the main loop looks at `trouble` at each turn, and nothing
is left half done.
"""

from scoring.journal import Journal


class Log:
    """After the first failure `trouble` says why, and nothing more is written."""

    def __init__(self, directory: str) -> None:
        self.trouble: str | None = None
        self._journal: Journal | None = None
        try:
            self._journal = Journal(directory, "keeper")
        except OSError as error:
            self.trouble = f"cannot write the keeper's events in {directory}: {error.strerror}"

    def write(self, kind: str, /, t: int | None = None, **fields: object) -> None:
        """Append one event, unless writing has failed before."""
        if self._journal is None or self.trouble is not None:
            return
        try:
            self._journal.write(kind, t, **fields)
        except OSError as error:
            self.trouble = f"cannot write the keeper's events to {self._journal.path}: {error.strerror}"
