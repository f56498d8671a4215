"""The worker's loop: ask the model, look at the control file, one tool call, checkpoint, status, look.

Between two tool calls, and only there, the worker obeys. A look comes after the model's answer and right
before the call, because a stop that arrives while the model talks must not be followed by a call; and one
comes after each checkpoint. When a message arrives between answer and call, the model is asked again, so that
no call follows from a goal that has changed.

Not done here: what a misbehaviour does (`hooks`), and what a signal does to a call in flight (`start`).
"""

import os
import re
import time

from fakes.worker import tool
from fakes.worker.checkpoint import Git
from fakes.worker.children import Child
from fakes.worker.control import Control, Look, Message
from fakes.worker.hooks import Hooks
from fakes.worker.model import Model
from fakes.worker.plan import Plan, Step
from scoring.journal import Journal

HELD_S_MAX = 12 * 3600.0
CALL_SLACK_S = 30.0
_TARGET = re.compile(r"\btarget=(\d+(?:\.[0-9A-Za-z]+)*)")
_MARK = re.compile(r"\[\[[a-z]+-[0-9a-zA-Z._-]+\]\]")


class Leave(Exception):
    """The worker ends: `reason` goes to the history, `status` is the exit status, `why` is for people."""

    def __init__(self, reason: str, status: int, why: str = "") -> None:
        super().__init__(why)
        self.reason = reason
        self.status = status
        self.why = why


class Worker:
    """One attempt at one task. `finished` is the last step that is done; steps count from 1.

    `pid` is that of another process when the worker is a loop that starts one process for each turn: then those
    write its journals one after another.
    """

    def __init__(
        self,
        run: str,
        attempt: int,
        plan: Plan,
        control: Control,
        model: Model,
        events: str,
        hooks: list[Hooks],
        pid: int | None = None,
    ) -> None:
        self.run_id, self.task, self.attempt = run, plan.task, attempt
        self.plan, self.control, self.model, self.hooks = plan, control, model, hooks
        self.pid = os.getpid() if pid is None else pid
        own, source = self.pid == os.getpid(), f"{self.task}-{attempt}-{self.pid}"
        self.journal = Journal(events, "worker-" + source, shared=not own)
        self._tools = Journal(events, "tools-" + source, shared=True)
        self.child = Child()
        self.git = Git(self.child, self.task)
        self.finished = 0
        self.texts = [plan.objective]
        self._marks = _MARK.findall(plan.objective)
        self._target = plan.target
        self._word, self._own_hold, self._dropped = "RUN", False, False
        self._calls, self._checkpoints, self._left = 0, 0, False
        self._call_lead = f"{self.task}.{attempt}/" if own else f"{self.task}.{attempt}/{os.getpid()}."
        self._touched: set[str] = set()
        self._new: set[str] = set()  # files that git does not know yet
        self._step: Step | None = None  # the one in hand

    def work(self) -> None:
        """From begin to the last step. Always ends with Leave, or with OSError or GitError."""
        self.finished = self.git.last_wip(self.plan.base)
        self.say_begin()
        self.hear("objective", self.plan.objective)
        self.say("working", "begin")
        for hook in self.hooks:
            hook.begin(self)
        step = self._obey(self._look(), self.finished + 1)
        while step <= self.plan.steps:
            step = self._do(self._decide(step))
        raise Leave("done", 0)

    def _decide(self, step: int) -> int:
        """Ask the model and look. The step to do now, which a hold may have changed."""
        for hook in self.hooks:
            hook.before_step(self, step)
        while True:  # ends, because each further round needs a message that has not been there before
            heard = len(self.texts)
            self.ask(self.plan.model)
            step = self._obey(self._look(), step)
            if len(self.texts) == heard:
                return step

    def _do(self, number: int) -> int:
        """One tool call with all that follows from it. The next step."""
        if number > self.plan.steps:
            return number
        self._step = step = self.plan.step(number)
        for hook in self.hooks:
            step.duration_s = hook.duration_s(self, number, step.duration_s)
        self._call(step)
        if step.tool == "edit":
            if not any(hook.checkpoint(self, number) for hook in self.hooks):
                self._checkpoint(step)
            for hook in self.hooks:
                hook.after_checkpoint(self, number, step.path)
        self.finished = number
        look = self._look()
        kinds = [message.kind for message in look.messages]
        self.journal.write("boundary", task=self.task, step=number, saw=look.word, messages=kinds)
        self.say("working", "boundary")
        return self._obey(look, number + 1)

    # Being told.

    def _look(self) -> Look:
        if any(hook.looks_away for hook in self.hooks):
            return Look("not read", ())
        return self.control.look()

    def _obey(self, look: Look, step: int) -> int:
        """Do what the look says: leave, wait, or go on. The step to do next."""
        self._take(look)
        if not self._held():
            return step
        self.journal.write("worker.parked", task=self.task, step=self.finished)
        self.say("parked", "hold")
        deadline = time.monotonic() + HELD_S_MAX
        while self._held():
            if time.monotonic() > deadline:
                raise Leave("error", 1, f"held for {HELD_S_MAX:g} s; {self.control.directory} still says hold")
            time.sleep(self.plan.poll_s)
            self._take(self._look())
        self.journal.write("worker.unparked", task=self.task, step=self.finished)
        self.say("working", "unparked")
        for hook in self.hooks:
            step = hook.resumed(self, step)
        return step

    def _held(self) -> bool:
        return self._word == "HOLD" or self._own_hold

    def _take(self, look: Look) -> None:
        for message in look.messages:
            self._take_message(message)
        self._word = look.word
        if self._word == "STOP" or self._dropped:
            reason = "stop" if self._word == "STOP" else "drop"
            for hook in self.hooks:
                hook.leaving(self, reason)
            raise Leave(reason, 0)

    def _take_message(self, message: Message) -> None:
        if message.kind in ("hold", "release"):
            self._own_hold = message.kind == "hold"
        elif message.kind == "drop":
            self._dropped = True
        elif message.kind in ("delta", "instruction", "objective"):
            self.take_in(message.text)
            self.hear(message.kind, message.text)
        else:
            self.note(f"message {message.n} has the unknown kind {message.kind!r}")

    def take_in(self, text: str) -> None:
        """From now on the model is sent this too, and the work goes by it."""
        self.texts.append(text)
        self._marks += _MARK.findall(text)
        if target := _TARGET.search(text):
            self._target = target[1]

    def hear(self, what: str, text: str) -> None:
        """Tell that this message was received."""
        self.journal.write("message", task=self.task, what=what, text=text)

    # Acting.

    def ask(self, metadata: dict[str, object]) -> bool:
        """One model request with everything that the worker was told so far. False when it went wrong."""
        trouble = self.model.ask(self.texts, metadata)
        if trouble:
            self.note(trouble)
        return not trouble

    def _call(self, step: Step) -> None:
        self._calls += 1
        call = f"{self._call_lead}{self._calls}"
        text = self._text_after(step) if step.tool == "edit" else b""
        issued_ns = time.monotonic_ns()
        self.journal.write(
            "tool.issue",
            issued_ns,
            call=call,
            task=self.task,
            attempt=self.attempt,
            step=step.number,
            pid=self.pid,
            child=step.child,
            tool=step.tool,
            path=step.path,
            duration_s=step.duration_s,
            marks=self._marks,
        )
        if step.child:
            self._call_in_child(step, call, issued_ns, text)
        else:
            tool.perform(step, call, issued_ns, text, self._tools)
        changed = [step.path] if step.tool == "edit" else []
        self.journal.write("tool.return", call=call, changed=changed)

    def _call_in_child(self, step: Step, call: str, issued_ns: int, text: bytes) -> None:
        if self.child.fork("tool") == 0:
            status = 70
            try:
                with open("/proc/self/comm", "w", encoding="ascii", errors="replace") as name:
                    name.write(f"tool-{self.task}"[:15])
                tool.perform(step, call, issued_ns, text, self._tools)
                status = 0
            except OSError as error:
                os.write(2, f"tool {call}: {error}\n".encode(errors="replace"))
            finally:
                os._exit(status)  # never back into the worker's loop, whatever happened
        limit_s = step.duration_s + CALL_SLACK_S
        result = self.child.wait(limit_s)
        if result is None:
            self.child.end(9, 1.0)
            raise Leave("error", 1, f"tool call {call} ended: it took more than {limit_s:g} s")
        if result:
            raise Leave("error", 1, f"tool call {call} failed with status {result} on {step.path}")

    def _text_after(self, step: Step) -> bytes:
        text = self._text_of(step.path)
        if text is None:
            self._new.add(step.path)
        self._touched.add(step.path)
        return tool.edited(text or b"", self.task, step.number, self._target)

    def _text_of(self, path: str) -> bytes | None:
        if self.attempt > 1 and path not in self._touched:
            # What an earlier attempt left behind may be half a file; the checkpoint is what it goes on from.
            return self.git.committed(path)
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _checkpoint(self, step: Step) -> None:
        self.git.commit(step.number, sorted(self._new))
        self._new.clear()
        self._checkpoints += 1
        self.checkpointed()
        every = self.plan.push_every
        if every and self._checkpoints % every == 0 and (status := self.git.push("HEAD")):
            self.note(f"git push origin HEAD failed with status {status}")

    # Telling.

    def say_begin(self) -> None:
        """Tell that the worker begins, and with which step."""
        self.journal.write(
            "worker.begin",
            task=self.task,
            attempt=self.attempt,
            pid=self.pid,
            run=self.run_id,
            step=self.finished + 1,
        )

    def checkpointed(self) -> None:
        """Tell of the commit of the step in hand."""
        if self._step:
            step = self._step
            self.journal.write("checkpoint", task=self.task, step=step.number, files=[step.path])

    def say(self, state: str, reason: str) -> None:
        """Write the status file."""
        self.control.write_status(state, self.finished, reason, self.attempt)

    def note(self, text: str) -> None:
        """Something worth telling that no check reads."""
        self.journal.write("worker.note", task=self.task, text=text)

    def goodbye(self, reason: str) -> None:
        """The worker's last words; only the first call says anything."""
        if self._left:
            return
        self._left = True
        self.journal.write("worker.end", task=self.task, attempt=self.attempt, pid=self.pid, reason=reason)
        self.say("ended", reason)
