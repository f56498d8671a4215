"""The twin that pushes to the integration branch."""

from fakes.coordinators.reference.coordinator import Coordinator
from fakes.coordinators.reference.ports import PortError

PUSHES = 3


class PushesToMain(Coordinator):
    """Pushes a branch to main as it grows; three times, because the first steps may change nothing."""

    _pushed_at = 0
    _pushes = 0

    def watch_work(self) -> None:
        super().watch_work()
        first = next(iter(self.tasks), None)
        status = self.port.status(first) if first else None
        if first and status and status.step >= self._pushed_at + 2 and self._pushes < PUSHES:
            self._pushed_at, self._pushes = status.step, self._pushes + 1
            self.job("push to main", self._push(first))

    async def _push(self, task: str) -> None:
        try:
            await self.port.push(f"refs/heads/{self.branch(task)}:refs/heads/main")
        except PortError:
            pass  # refused is what a protected branch does; the attempt was made
