"""The port of the broken coordinators: the real one, and a few reckless acts that the reference one cannot
do.

Kept apart so that reading `reference` shows that no such thing is within its reach.
"""

import os
import signal

from fakes.coordinators.reference.config import Config
from fakes.coordinators.reference.ports import Port, PortError
from fakes.coordinators.reference.posix import PosixPort


class RecklessPort(PosixPort):
    """A real port with the acts that the twins need."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._program, self._run = config.worker[-1], config.run

    def interrupt_own_group(self) -> None:
        """SIGINT to the coordinator's own process group, which it survives.

        Raises PortError when it is not the group's leader: it would hit whoever started it, perhaps a test.
        """
        if os.getpgrp() != os.getpid():
            raise PortError("the coordinator does not lead its process group; start it in a session of its own")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.killpg(os.getpgrp(), signal.SIGINT)

    def terminate_by_name(self) -> list[int]:
        """SIGTERM to all processes of the worker's program whose run id begins like ours; the pids hit.

        The bug is the prefix. The program's whole path has to match, so that nothing else is in danger.
        """
        hit = []
        for pid in [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]:
            try:
                fd = os.pidfd_open(pid)
            except OSError:
                continue  # gone since the listing
            try:
                if self._looks_like_ours(pid):
                    signal.pidfd_send_signal(fd, signal.SIGTERM)
                    hit.append(pid)
            except ProcessLookupError:
                pass  # it ended in between; nothing was hit
            finally:
                os.close(fd)
        return hit

    def _looks_like_ours(self, pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                argv = file.read().decode(errors="replace").split("\0")
        except OSError:
            return False
        after = argv[argv.index("--run") + 1 :] if "--run" in argv else []
        return self._program in argv and bool(after) and after[0].startswith(self._run)

    async def remove_worktree(self, worktree: str) -> None:
        """Delete a worktree with everything in it."""
        await self.git("worktree", "remove", "--force", worktree)


def reckless(port: Port) -> RecklessPort:
    """The port of a broken coordinator, as what it is.

    Raises TypeError in a world where nobody can be harmed.
    """
    if not isinstance(port, RecklessPort):
        raise TypeError(f"this twin needs a real machine, not a {type(port).__name__}")
    return port
