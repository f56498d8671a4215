"""A worker's start and its end: environment in, exit status out, and what a signal does.

SIGTERM and SIGINT end the worker at once, in mid-call too: it says so, kills its own tool child and exits
with 143 or 130. All of that happens in the handler, which never returns: an exception thrown into the loop
could be swallowed or could arrive in the middle of a clean-up.
"""

import os
import signal
import sys
from types import FrameType

from fakes.worker.checkpoint import GitError
from fakes.worker.children import STOPS
from fakes.worker.control import Control
from fakes.worker.fence import outside
from fakes.worker.hooks import Hooks
from fakes.worker.loop import Leave, Worker
from fakes.worker.model import Model
from fakes.worker.plan import Plan, PlanError

USAGE = "usage: python -I -S -E fakes/worker/__main__.py --run RUN --task TASK"
_REASONS = {signal.SIGTERM: "term", signal.SIGINT: "int"}


def main(arguments: list[str]) -> int:
    """Exit status: 0 done, stopped, dropped; 1 error; 2 bad usage, plan or environment; 143, 130 signal."""
    given = dict(zip(arguments[::2], arguments[1::2], strict=False))
    if len(arguments) != 4 or given.keys() != {"--run", "--task"}:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        worker = _worker(given["--run"], given["--task"])
    except (PlanError, OSError) as error:
        print(f"worker {given['--task']}: {error}", file=sys.stderr)
        return 2
    listen(worker)
    return _work(worker)


def _worker(run: str, task: str) -> Worker:
    def setting(name: str) -> str:
        value = os.environ.get(name)
        if not value:
            raise PlanError(f"{name} is not set; a worker is started by a coordinator, with the run's environment")
        return value

    if why := outside(setting("STOPDRILL_EVENTS")):
        raise PlanError(why)
    plan = Plan(setting("STOPDRILL_PLAN"), task)
    try:
        attempt = int(os.environ.get("ATTEMPT", "1"))
        model = Model(setting("STOPDRILL_PROVIDER"), setting("STOPDRILL_TOKEN"), run, task, attempt)
    except ValueError as error:
        raise PlanError(f"ATTEMPT or STOPDRILL_PROVIDER: {error}") from error
    control = Control(setting("STOPDRILL_CONTROL"), task)
    return Worker(run, attempt, plan, control, model, setting("STOPDRILL_EVENTS"), _hooks(plan))


def _hooks(plan: Plan) -> list[Hooks]:
    if not plan.misbehaviours:
        return []
    from fakes.behaviours import make  # only here, because a worker that behaves must not pay for it

    try:
        return [make(scripted) for scripted in plan.misbehaviours]
    except ValueError as error:
        raise PlanError(f"task {plan.task}: {error}") from error


def _work(worker: Worker) -> int:
    try:
        worker.work()
    except Leave as leave:
        reason, status, why = leave.reason, leave.status, leave.why
    except (OSError, GitError) as error:
        reason, status, why = "error", 1, str(error)
    try:
        worker.goodbye(reason)
    except OSError as error:  # a full disk cannot take the last words either
        why = why or str(error)
        status = 1
    if why:
        print(f"worker {worker.task}: {why}", file=sys.stderr)
    return status


def listen(worker: Worker) -> None:
    """Install the handlers, whatever the parent had ignored or blocked."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        try:
            told = signal.Signals(number)
            worker.journal.write("worker.signal", task=worker.task, pid=os.getpid(), signal=told.name)
            _end_child(worker)
            worker.goodbye(_REASONS[told])
        finally:
            os._exit(128 + number)

    for number in STOPS:
        signal.signal(number, stop)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, children can't be waited for
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def _end_child(worker: Worker) -> None:
    child, patience_s = worker.child, worker.plan.kill_after_s / 4
    if child.what == "tool":
        child.end(signal.SIGKILL, patience_s)
        return
    # Git first gets the time to finish, because cut short it would leave its locks behind.
    status = child.wait(patience_s)
    if status is None:
        child.end(signal.SIGTERM, patience_s)
    elif status == 0 and child.what == "git commit":
        worker.checkpointed()  # otherwise the branch would hold a step that the history doesn't know
