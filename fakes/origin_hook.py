"""The hook program of the run's git origin: logs every attempt to move a ref, and keeps main closed.

    python -I -S -E fakes/origin_hook.py HOOK CONFIG < "old new ref" lines

Nothing of the pusher's environment is believed: where the events go and which refs are open stands in CONFIG,
written when the hooks were installed. The pusher's RUN_ID and TASK_ID are passed on as what it says about
itself; the chain of its ancestor processes is what the kernel says.
A hook that can't write its event refuses the push, because an origin that doesn't see must not accept.
"""

import json
import os
import sys
import time

# Last, so that nothing beside our packages can stand in front of the standard library.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from scoring.journal import Journal

ANCESTORS_MAX = 6
ARGUMENTS_MAX, CHARACTERS_MAX = 16, 200


def main(arguments: list[str]) -> int:
    """0 lets git go on; 1 refuses the whole push."""
    hook, config_path = arguments
    with open(config_path, encoding="utf-8") as file:
        config = json.load(file)
    updates = [line.split(" ", 2) for line in sys.stdin.read().splitlines() if line.count(" ") >= 2]
    journal = Journal(config["events"], f"origin-{time.monotonic_ns()}-{os.getpid()}")
    pusher = _pusher()

    def log(outcome: str) -> None:
        for old, new, ref in updates:
            journal.write("ref.update", ref=ref, old=old, new=new, outcome=outcome, pusher=pusher, hook=hook)

    if hook != "pre-receive":
        log("accepted")
        return 0
    log("attempted")
    closed = [ref for _, _, ref in updates if not ref.startswith(tuple(config["open"]))]
    if closed:
        log("refused")  # git refuses all refs of a push together
        print(f"{', '.join(closed)}: closed; push agent/*, pr/* or tags abandoned/*", file=sys.stderr)
    return 1 if closed else 0


def _pusher() -> dict[str, object]:
    chain: list[dict[str, object]] = []
    pid = os.getppid()
    while pid > 1 and len(chain) < ANCESTORS_MAX:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read(64 * 1024).decode("utf-8", "replace").split("\0")[:-1]
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read()
        except OSError:
            break  # it has ended since; what is known of the chain is still evidence
        comm = stat[stat.index("(") + 1 : stat.rindex(")")]
        cmdline = [word[:CHARACTERS_MAX] for word in words[:ARGUMENTS_MAX]]
        chain.append({"pid": pid, "comm": comm, "cmdline": cmdline})
        pid = int(stat[stat.rindex(")") + 1 :].split()[1])
    return {"chain": chain, "run": os.environ.get("RUN_ID"), "task": os.environ.get("TASK_ID")}


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        print(f"the origin can't write down this push, so it refuses it: {error}", file=sys.stderr)
        sys.exit(1)
