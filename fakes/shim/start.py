"""A shim's first milliseconds: command line, task, attempt, and the first event; then the turn begins.

Nothing here imports more than what is built into the interpreter, so that a fan-out script sees its workers start
as fast as anything in Python can. The first event is written by hand for the same reason, and until the worker's
own handlers are there a stop signal is written down in the same way.
"""

import _signal  # type: ignore[import-not-found]  # `signal` makes enums of everything, for 4 ms
import posix
import time

from fakes.shim.ancestors import loop_above, start_of
from fakes.shim.arguments import Arguments, parse
from fakes.shim.claims import Claims
from fakes.shim.identity import find, planned, read
from fakes.worker.fence import outside

TYPE_CHECKING = False  # spares the import of `typing`
if TYPE_CHECKING:
    from fakes.shim.claims import Claim


class Refused(Exception):
    """The shim can't work here. The message says what is missing."""


class Call:
    """One call of a CLI that has found its task. `pid` is the worker's: the shim's own, or that of the loop above."""

    __slots__ = ("_prompt", "attempt", "env", "events", "folder", "given", "name", "new", "pid", "plan", "task")

    def __init__(self, name: str, given: Arguments) -> None:
        self.name, self.given = name, given
        self.env = {_text(key): _text(value) for key, value in posix.environ.items()}
        self.plan, self.events = self.setting("STOPDRILL_PLAN"), self.setting("STOPDRILL_EVENTS")
        # Not beside the plan, because a coordinator may give its workers a plan of its own.
        self.folder = (self.env.get("STOPDRILL_CONTROL") or self.plan).rpartition("/")[0] + "/shim"
        self.pid = loop_above() if given.turns else posix.getpid()
        self.task, self.attempt, self.new = "", 0, False
        self._prompt: str | None = None

    def setting(self, name: str) -> str:
        """A variable of the run's environment, or Refused."""
        value = self.env.get(name)
        if not value:
            raise Refused(f"{name} is not set; this is a simulated worker and needs the environment of its run")
        return value

    def prompt(self) -> str:
        """The prompt, read when it is asked for first."""
        if self._prompt is None:
            from fakes.shim.prompt import read_prompt

            self._prompt = read_prompt(self.given)
        return self._prompt

    def session_file(self, session: str) -> str:
        """Where it is kept whose session that is."""
        return f"{self.folder}/session-{''.join(c for c in session if c.isalnum() or c in '-_')[:80]}"


def main(words: list[str]) -> int:
    """Exit status: 0 done or answered; 1 error; 2 no task, plan or environment; 143, 130 signal."""
    _keep_standard_files()
    name = words[0] if words else "agent"
    given = parse(name, words[1:])
    if given.answer:
        posix.write(1, f"{given.answer}\n".encode())
        return 0
    try:
        call = _enter(name, given)
    except (Refused, OSError) as error:
        posix.write(2, f"{name}: {error}\n".encode("utf-8", "replace"))
        return 2
    from fakes.shim.turn import run

    return run(call)


def _enter(name: str, given: Arguments) -> Call:
    """Find task and attempt, and say so."""
    call = Call(name, given)
    if given.cwd:
        posix.chdir(given.cwd)
    if why := outside(call.events):
        raise Refused(why)
    tasks, adds = planned(read(call.plan))
    if not tasks:
        raise Refused(f"{call.plan} is no plan with tasks")
    task, how = find([*tasks, *adds], call.env.get("TASK_ID", ""), posix.getcwd(), call.prompt)
    if not task and given.session and (known := read(call.session_file(given.session))) in (*tasks, *adds):
        task, how = known, "session"
    claim = _claim(call, task, tasks)
    call.task, call.attempt, call.new = claim.task, claim.attempt, claim.new
    _first_event(call, how or "guess")
    return call


def _claim(call: Call, task: str, tasks: list[str]) -> "Claim":
    claims, again = Claims(call.folder, f"{call.pid} {start_of(call.pid)}"), bool(call.given.turns)
    if task:
        told = call.env.get("ATTEMPT", "")
        return claims.take(task, int(told) if told.isascii() and told.isdigit() else 1, again)
    guess = claims.guess(tasks, again)
    if guess is None:
        raise Refused(
            "which task is this? Neither TASK_ID nor folder, branch or prompt name a planned one, "
            f"and all of {', '.join(tasks)} are taken"
        )
    return guess


def _first_event(call: Call, how: str) -> None:
    own = call.pid == posix.getpid()
    path = f"{call.events}/worker-{call.task}-{call.attempt}-{call.pid}.jsonl"
    file = posix.open(path, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC, 0o644)
    lead = "" if own else "\n"  # as `scoring.journal` frames a file that has several writers
    unknown = ",".join(map(quoted, call.given.unknown))

    def write(kind: str, more: str) -> None:
        line = f'{lead}{{"t":{time.monotonic_ns()},"kind":"{kind}","task":{quoted(call.task)},{more}}}\n'
        posix.write(file, line.encode("ascii"))

    def stop(number: int, frame: object) -> None:
        told = "SIGTERM" if number == _signal.SIGTERM else "SIGINT"
        write("worker.signal", f'"pid":{posix.getpid()},"signal":"{told}"')
        posix._exit(128 + number)

    _signal.signal(_signal.SIGTERM, stop)
    _signal.signal(_signal.SIGINT, stop)
    write(
        "shim",
        f'"name":{quoted(call.name)},"how":"{how}","argv_unknown":[{unknown}],"pid":{posix.getpid()},'
        f'"turns":{call.given.turns},"cpu_ms":{time.process_time() * 1000:.2f}',
    )
    _wear_the_name(call.name)


def _wear_the_name(name: str) -> None:
    """Whoever looks for agents by name shall find this one."""
    try:
        file = posix.open("/proc/self/comm", posix.O_WRONLY | posix.O_CLOEXEC)
    except OSError:
        return
    posix.write(file, name.encode()[:15])
    posix.close(file)


def _keep_standard_files() -> None:
    """A journal must not get the number of a closed standard output."""
    while (file := posix.open("/dev/null", posix.O_RDWR)) <= 2:
        pass
    posix.close(file)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def quoted(text: str) -> str:
    """The text as JSON, in ASCII."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    units = text.encode("utf-16-be", "surrogatepass")
    return '"' + "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)) + '"'
