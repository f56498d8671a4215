"""A bystander: a process outside the run that looks like one of it, and notes whoever signals it.

A stop that searches by name, by environment or by a stale pid also hits the neighbour. So the drill puts one
there: it carries the command line and the ids of a worker, blocks every signal that can be blocked, and
writes each one that comes with its sender (A3). It stays alive, except for SIGTERM from its own parent, the
keeper: that is its dismissal. SIGKILL and SIGSTOP leave no note of its own; the keeper sees those.

Started as a service: `python -I -S -E fakes/bystander.py --events DIR --name NAME [anything that looks the
part]`.
"""

import os
import signal
import sys
from collections.abc import Sequence


def stand_by(events: str, name: str) -> None:
    """Write every signal until the parent's SIGTERM. Raises OSError when the events cannot be written."""
    parent = os.getppid()
    signals = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    from scoring.journal import Journal  # after the mask, because an early signal would be lost meanwhile

    journal = Journal(events, f"bystander-{name}")
    journal.write("bystander.begin", name=name, pid=os.getpid(), parent=parent)
    while True:
        info = signal.sigwaitinfo(signals)
        if info.si_signo == signal.SIGTERM and info.si_pid == parent:
            break
        journal.write("bystander.signal", name=name, signal=info.si_signo, sender=info.si_pid, uid=info.si_uid)
    journal.write("bystander.end", name=name)
    journal.close()


def main(argv: Sequence[str]) -> int:
    """`--events DIR --name NAME`, and any words besides; the exit status."""
    words = list(argv)
    given = {word: words[at + 1] for at, word in enumerate(words[:-1]) if word in ("--events", "--name")}
    if len(given) != 2:
        sys.stderr.write("usage: bystander.py --events DIR --name NAME [ignored words]\n")
        return 2
    stand_by(given["--events"], given["--name"])
    return 0


if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.exit(main(sys.argv[1:]))
