"""The work of one call: the simulated worker's loop without control file, for one task or for some steps of it.

Without a limit the call is a whole worker, from `worker.begin` to `worker.end`. With `--max-turns N` it is N steps
of one: the worker is then the loop that calls, under its pid, which begins with its first call and of whose end
nothing is said here, because it isn't ours. Each call is a process of its own all the same: a signal, a tool
call's own words and a misbehaviour are this process's.

A step goes on from the last `wip:` commit or from what an earlier call left behind in `memory`, whichever is
further, so that uncommitted work is gone on with.
"""

import os

from fakes.shim.memory import Memory, told_as
from fakes.shim.output import Output, Tally, new_session, style_of
from fakes.shim.start import Call, Refused
from fakes.worker.checkpoint import GitError
from fakes.worker.control import Control, Look
from fakes.worker.hooks import Hooks
from fakes.worker.loop import Leave, Worker
from fakes.worker.model import Model
from fakes.worker.plan import Plan, PlanError, Step
from fakes.worker.start import listen

TOLD_MAX = 2000


class NoControl(Control):
    """The control directory of somebody who knows none."""

    def __init__(self) -> None:
        self.directory = ""

    def look(self) -> Look:
        return Look("not read", ())

    def write_status(self, state: str, step: int, reason: str, attempt: int) -> None:
        pass


class Turn(Worker):
    """One call at work."""

    def __init__(self, call: Call, plan: Plan, hooks: list[Hooks]) -> None:
        run = call.setting("RUN_ID")
        try:
            url, token = call.setting("STOPDRILL_PROVIDER"), call.setting("STOPDRILL_TOKEN")
            model = Model(url, token, run, call.task, call.attempt)
        except ValueError as error:
            raise PlanError(f"STOPDRILL_PROVIDER: {error}") from error
        super().__init__(run, call.attempt, plan, NoControl(), model, call.events, hooks, call.pid)
        self._call_of_cli, given = call, call.given
        self.memory, self.tally = Memory(call.folder, call.task), Tally()
        known = self.memory.session if given.resumed else ""
        self.session = given.session or known or new_session(call.name)
        self.output = Output(call.name, style_of(call.name, given.format), self.session, self.tally)
        self.texts, self._marks = [], []

    @property
    def whole(self) -> bool:
        """Whether this process is the worker."""
        return self.pid == os.getpid()

    def work(self) -> None:
        """From where the task stands to its end, or as many steps as were asked for. Ends like `Worker.work`."""
        self.finished = max(self._last_commit(), self.memory.step)
        if self._call_of_cli.new:
            self.say_begin()
        self._listen_to(self._call_of_cli.prompt())
        for hook in self.hooks:
            hook.begin(self)
        self.output.begin()
        step, turns = self.finished + 1, self._call_of_cli.given.turns
        last = min(self.plan.steps, self.finished + turns) if turns else self.plan.steps
        while step <= last:
            step = self._do(self._decide(step))
        raise Leave("done", 0)

    def _last_commit(self) -> int:
        try:
            return self.git.last_wip(self.plan.base)
        except GitError:
            return 0  # no repository, or one without that branch: then nothing is committed

    def _listen_to(self, prompt: str) -> None:
        call, memory = self._call_of_cli, self.memory
        fresh = call.new and not call.given.resumed
        what = "objective" if fresh else told_as(prompt, memory.prompt)
        # A session carries what was said in it, and so do the requests that follow.
        memory.texts = [*(memory.texts if call.given.resumed else ()), prompt]
        for text in memory.texts:
            self.take_in(text)
        if what or call.new:
            self.hear(what or "prompt", prompt[:TOLD_MAX])
        memory.prompt, memory.session = prompt, self.session
        memory.save()
        with open(call.session_file(self.session), "w", encoding="ascii") as file:
            file.write(call.task)

    def ask(self, metadata: dict[str, object]) -> bool:
        answered = super().ask(metadata)
        used = [metadata.get(key) if answered else 0 for key in ("tokens_in", "tokens_out")]
        tokens_in, tokens_out = (number if isinstance(number, int) else 0 for number in used)
        self.tally.requests += 1
        self.tally.tokens_in += tokens_in
        self.tally.tokens_out += tokens_out
        return answered

    def _do(self, number: int) -> int:
        following = super()._do(number)
        self.memory.step = self.finished
        self.memory.save()
        self.tally.steps += 1
        self.output.step(f"{self.task}: step {self.finished} of {self.plan.steps} is done.")
        return following

    def _text_of(self, path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return None
        # Work that nobody committed is gone on with; only half a file, which a killed call left, is not.
        if path in self._touched or text.endswith(b" end\n"):
            return text
        committed = self.git.committed(path)
        return committed if committed is not None and len(text) < len(committed) else text

    def _checkpoint(self, step: Step) -> None:
        if self.plan.shim_commits:
            super()._checkpoint(step)

    def goodbye(self, reason: str) -> None:
        if reason in ("term", "int") and not self._left:
            for hook in self.hooks:
                hook.leaving(self, "stop")  # for a CLI, a signal is how it is told to leave
        if self.whole:
            super().goodbye(reason)
        self._left = True

    def last_words(self, leave: Leave) -> None:
        """Print what the turn came to."""
        done = f"step {self.finished} of {self.plan.steps} is done"
        if leave.status:
            text = f"{self.task}: {leave.why}"
        elif self.finished >= self.plan.steps:
            text = f"{self.task}: {done}, all steps are done."
        else:
            text = f"{self.task}: {done}."
        self.output.end(text, error=bool(leave.status))
        if path := self._call_of_cli.given.last_message:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")


def run(call: Call) -> int:
    """Do the call's work. The exit status."""
    try:
        plan = Plan(call.plan, call.task)
        turn = Turn(call, plan, _hooks(plan, whole=not call.given.turns))
    except (Refused, PlanError, OSError) as error:
        os.write(2, f"{call.name}: {error}\n".encode(errors="replace"))
        return 2
    listen(turn)
    return _work(turn)


def _hooks(plan: Plan, whole: bool) -> list[Hooks]:
    if not plan.misbehaviours:
        return []
    from fakes.behaviours import make  # only here, because a shim that behaves must not pay for it

    # A supervisor would start a turn again that has merely come to its end.
    wanted = [one for one in plan.misbehaviours if whole or one.get("name") != "respawned"]
    try:
        return [make(scripted) for scripted in wanted]
    except ValueError as error:
        raise PlanError(f"task {plan.task}: {error}") from error


def _work(turn: Turn) -> int:
    leave = Leave("error", 1)
    try:
        turn.work()
    except Leave as left:
        leave = left
    except (OSError, GitError) as error:
        leave = Leave("error", 1, str(error))
    try:
        turn.goodbye(leave.reason)
        turn.last_words(leave)
    except OSError as error:  # a full disk cannot take the last words either
        leave = Leave("error", 1, leave.why or str(error))
    if leave.why:
        os.write(2, f"{turn.task}: {leave.why}\n".encode(errors="replace"))
    return leave.status
