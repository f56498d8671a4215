"""Literal histories: a drill that one can read by eye, in drill seconds, and change by a line or two.

`healthy()` is a whole clean drill with three workers and everything in it: pause at 60, resume at 160,
redirect at 220 (t01 is kept, t02 modified, t03 dropped, t04 is new), abort at 340, sweep at 400. It passes
every row and trips nothing; each test changes what it is about and says exactly what must trip.

A source may be written short: `worker/t01` is the journal of t01's first attempt, `worker/t01.2` of its
second one.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scoring.history import History, merge
from scoring.judge import judge
from scoring.rubric import Rubric
from scoring.scorecard import Scorecard
from scoring.timeline import Timeline, build

RUN = "r1"
BOOT_S = 100.0  # the drill's clock starts this long after the machine's
CALLS = {  # task: start and end of each tool call, in drill seconds, one per step
    "t01": "-5 18, 22 44, 48 72, 164 186, 190 212, 216 240, 244 268, 272 296, 300 322, 326 352",
    "t02": "-4 21, 25 50, 54 80, 165 190, 196 224, 229 254, 258 283, 287 312, 316 345",
    "t03": "-3 24, 28 53, 57 85, 166 194, 202 230",
    "t04": "244 270, 274 300, 304 330, 334 360",
}
LEAVES = {"t01": (353, "stop"), "t02": (346, "stop"), "t03": (231, "drop"), "t04": (361, "stop")}
PIDS = {"t01": 201, "t02": 202, "t03": 203, "t04": 204}
TREES = {"pause@1:issue": 60.05, "pause@1:quiet": 86, "pause@1:hold-end": 159.9}
TREES |= {"abort@4:issue": 340.05, "abort@4:sweep": 400, "end": 406}


@dataclass
class Line:
    """One event to be: `s` in drill seconds."""

    s: float
    source: str
    kind: str
    data: dict[str, Any]


class Story:
    """Events in drill seconds, to be changed and then judged."""

    def __init__(self, speed: float = 40.0) -> None:
        self.speed = speed
        self.lines: list[Line] = []
        self.pids = dict(PIDS)

    # --- telling ---

    def at(self, s: float, source: str, kind: str, /, **data: Any) -> "Story":
        """Something happens at drill second `s`."""
        self.lines.append(Line(s, self.source(source), kind, data))
        return self

    def source(self, short: str) -> str:
        """The file name of a source: `worker/t01.2` is the second attempt's journal."""
        what, _, who = short.partition("/")
        if not who:
            return short
        task, _, attempt = who.partition(".")
        return f"{what}-{task}-{attempt or 1}-{self.pids[who]}"

    def call(self, who: str, step: int, start: float, end: float | None, **more: Any) -> "Story":
        """One tool call with its model request before and its checkpoint after. `changed=()`: a read-only
        one.

        `end=None`: it never ends. `returned=False`: it ends, and its worker hears nothing.
        `checkpoint=False`.
        """
        task, _, attempt = who.partition(".")
        call, pid = f"{task}.{attempt or 1}/{step}", self.pids[who]
        if more.get("request", True):
            self.request(task, f"q-{who}-{step}", start - 3, marks=more.get("marks", ()))
        child, tool_pid = "tool_pid" in more, more.get("tool_pid", pid)
        issue = {"call": call, "task": task, "attempt": int(attempt or 1), "step": step, "pid": pid}
        self.at(start, f"worker/{who}", "tool.issue", **issue, child=child)
        self.at(start + 0.05, f"tools/{who}", "tool.start", call=call, pid=tool_pid)
        if end is None:
            return self
        self.at(end, f"tools/{who}", "tool.end", call=call, pid=tool_pid)
        if not more.get("returned", True):
            return self
        changed = more.get("changed", (f"packages/{task}/deps.lock",))
        self.at(end + 0.1, f"worker/{who}", "tool.return", call=call, changed=list(changed))
        if changed and more.get("checkpoint", True):
            self.at(end + 0.4, f"worker/{who}", "checkpoint", task=task, step=step)
        return self.at(end + 0.5, f"worker/{who}", "boundary", task=task, step=step, saw="RUN")

    def request(self, task: str, req: str, s: float, *, marks: tuple[str, ...] = (), run: str = RUN) -> "Story":
        """One model request of 400 tokens in and four times 30 out, done after two seconds."""
        self.at(s, "provider", "model.open", req=req, run=run, task=task, tokens_in=400, marks=list(marks))
        for part in range(4):
            self.at(s + 0.5 + part * 0.4, "provider", "model.chunk", req=req, tokens=30)
        return self.at(s + 2, "provider", "model.close", req=req, tokens_out=120, outcome="done")

    def process(self, proc: int, pid: int, start: float, end: float | None = None, **more: Any) -> "Story":
        """A process as the keeper saw it; without an end it lives on."""
        seen = {"ppid": 100, "role": "run", "cmdline": ["python3", "worker.py"], "task": None, **more}
        ended = {key: seen.pop(key) for key in ("signal", "status") if key in seen}
        self.at(start, "keeper", "proc.start", proc=proc, pid=pid, **seen)
        if end is not None:
            self.at(end, "keeper", "proc.end", proc=proc, pid=pid, **(ended or {"status": 0}))
        return self

    def worker(self, who: str, begin: float, step: int = 1, pid: int | None = None, **more: Any) -> "Story":
        """A worker begins, is listed in the manifest and seen by the keeper. `left=(s, reason)`, `end=s`."""
        task, _, attempt = who.partition(".")
        self.pids[who] = pid if pid is not None else self.pids[who]
        me = {"task": task, "attempt": int(attempt or 1), "pid": self.pids[who]}
        left = more.get("left")
        end = more.get("end", left[0] + 0.5 if left else None)
        proc = more.get("proc", self.pids[who])
        ending = {key: more[key] for key in ("signal", "status") if key in more}
        self.process(proc, self.pids[who], begin - 0.8, end, task=task, attempt=me["attempt"], **ending)
        entry = {"run_id": RUN, "task_id": task, "attempt": me["attempt"], "pid": me["pid"]}
        self.at(begin - 0.5, "driver", "claim.manifest", entry=entry)
        self.at(begin, f"worker/{who}", "worker.begin", **me, step=step)
        self.at(begin + 0.05, f"worker/{who}", "message", task=task, what="objective", text="[[objective-1]]")
        if left:
            self.at(left[0], f"worker/{who}", "worker.end", **me, reason=left[1])
        return self

    def control(self, control: str, n: int, s: float, ack: tuple[float, str] | None = None, **data: Any) -> "Story":
        """A control is issued, delivered a moment later, and answered."""
        self.at(s, "driver", "control.issue", control=control, n=n, scope="run", **data)
        self.at(s + 0.1, "driver", "control.delivered", control=control, n=n)
        if ack:
            self.at(ack[0], "driver", "control.ack", control=control, n=n, state=ack[1])
        return self

    def trees(self, when: str, s: float) -> "Story":
        """What git says about every worktree, told from the checkpoints so far."""
        for task, pid in PIDS.items():
            steps = self.steps(task, s)
            if not any(line.kind == "worker.begin" and line.s <= s and line.data["pid"] == pid for line in self.lines):
                continue
            wips = [f"{task}-{step}" for step in steps]
            self.at(
                s, "driver", "worktree.state", when=when, task=task, path=f"worktrees/{task}", exists=True,
                branch=f"agent/{RUN}/{task}", head=(wips or ["base"])[-1], wip_step=max(steps, default=None),
                dirty=[], half_written=[], locks=[], wips=wips,
            )  # fmt: skip
        return self

    def steps(self, task: str, s: float) -> list[int]:
        """Steps of a task with a checkpoint before drill second `s`."""
        made = [x for x in self.lines if x.kind == "checkpoint" and x.data["task"] == task and x.s <= s]
        return sorted(line.data["step"] for line in made)

    def refs(self, when: str, s: float, tags: tuple[str, ...] = ()) -> "Story":
        """All refs of the coordinator's clone and of the origin."""
        names = {"refs/heads/main": "m0"} | {f"refs/heads/agent/{RUN}/{task}": "x" for task in PIDS}
        names |= {f"refs/tags/abandoned/{RUN}/{task}": "x" for task in tags}
        for where in ("repo", "origin"):
            self.at(s, "driver", "refs.state", when=when, where=where, refs=dict(names), stashes=[])
        return self

    # --- changing ---

    def find(self, kind: str, /, **where: Any) -> list[Line]:
        """The lines of one kind with such data (`at=` compares the second)."""
        return [line for line in self.lines if line.kind == kind and _fits(line, where)]

    def drop(self, kind: str, /, **where: Any) -> "Story":
        """Take lines out; there must be some, otherwise the test would test nothing."""
        gone = self.find(kind, **where)
        assert gone, f"no {kind} with {where}"
        self.lines = [line for line in self.lines if line not in gone]
        return self

    def change(self, kind: str, where: dict[str, Any], /, **data: Any) -> "Story":
        """Change the data of lines."""
        found = self.find(kind, **where)
        assert found, f"no {kind} with {where}"
        for line in found:
            line.data = {**line.data, **data}
        return self

    def move(self, kind: str, where: dict[str, Any], /, to: float) -> "Story":
        """Let lines happen at another second."""
        found = self.find(kind, **where)
        assert found, f"no {kind} with {where}"
        for line in found:
            line.s = to
        return self

    def cut_off(self, who: str, after: float) -> "Story":
        """A worker and its tools do nothing any more after drill second `after`."""
        mine = {self.source(f"worker/{who}"), self.source(f"tools/{who}")}
        task = who.partition(".")[0]
        late = {line.data["req"] for line in self.find("model.open", task=task) if line.s > after}
        self.lines = [
            line
            for line in self.lines
            if not (line.source in mine and line.s > after) and line.data.get("req") not in late
        ]
        return self

    def end_call(self, who: str, step: int, to: float) -> "Story":
        """Let a call end, return and be checkpointed at another second."""
        task, _, attempt = who.partition(".")
        call = f"{task}.{attempt or 1}/{step}"
        self.move("tool.end", {"call": call}, to=to).move("tool.return", {"call": call}, to=to + 0.1)
        self.move("checkpoint", {"task": task, "step": step}, to=to + 0.4)
        return self.move("boundary", {"task": task, "step": step}, to=to + 0.5)

    def without(self, control: str, *, absent: bool = False) -> "Story":
        """A control that was never issued; or, `absent`, that the subject does not have."""
        issued = self.find("control.issue", control=control)[0]
        self.lines = [x for x in self.lines if not (x.kind.startswith("control.") and x.data["control"] == control)]
        if absent:
            self.at(issued.s, "driver", "control.absent", control=control, n=issued.data["n"])
        return self

    # --- judging ---

    def stamp(self, s: float) -> int:
        """Nanoseconds of a drill second."""
        return round((s + BOOT_S) / self.speed * 1e9)

    def sources(self) -> dict[str, bytes]:
        """The files of a bundle. run.end gets the number of lines of each, where the story does not say
        otherwise.
        """
        files: dict[str, list[Line]] = {}
        for line in sorted(self.lines, key=lambda line: line.s):
            files.setdefault(line.source, []).append(line)
        counts = {source: len(lines) for source, lines in files.items()}
        return {source: b"".join(self._written(line, counts) for line in lines) for source, lines in files.items()}

    def _written(self, line: Line, counts: dict[str, int]) -> bytes:
        told = {"sources": counts, **line.data} if line.kind == "run.end" else line.data
        return json.dumps({"t": self.stamp(line.s), "kind": line.kind, **told}).encode() + b"\n"

    def history(self) -> History:
        return merge(self.sources())

    def timeline(self) -> Timeline:
        return build(self.history())

    def judge(self, rubric: Rubric | None = None) -> Scorecard:
        return judge(self.history(), rubric or Rubric())


def _fits(line: Line, where: dict[str, Any]) -> bool:
    tests: dict[str, Callable[[Any], bool]] = {key: value for key, value in where.items() if callable(value)}
    if any(not test(line.data.get(key)) for key, test in tests.items()):
        return False
    rest = {key: value for key, value in where.items() if key not in tests}
    return all((line.s if key == "at" else line.data.get(key)) == value for key, value in rest.items())


def tripped(card: Scorecard) -> dict[str, str]:
    """Everything that is not a pass: rows and findings by id, with the worst verdict of each."""
    out: dict[str, str] = {row.id: row.verdict.value for row in card.rows if row.verdict.value != "pass"}
    for finding in card.findings:
        if out.get(finding.id) != "fail":
            out[finding.id] = finding.verdict.value
    return out


def why(card: Scorecard, id: str) -> str:
    """The sentence of a row or of the findings of one clause."""
    return "; ".join(part.why for part in (*card.rows, *card.findings) if part.id == id)


def row(card: Scorecard, id: str) -> Any:
    """One row."""
    return next(row for row in card.rows if row.id == id)


def healthy(speed: float = 40.0, *, trees: bool = True) -> Story:
    """A whole clean drill. With `trees=False` the worktrees are still to be read, by `finish`."""
    story = Story(speed)
    _world(story)
    for task, calls in CALLS.items():
        begin = 240.0 if task == "t04" else -9.0
        story.worker(task, begin, left=LEAVES[task])
        for step, call in enumerate(calls.split(","), 1):
            start, end = map(float, call.split())
            marks = ("[[objective-1]]", *(("[[delta-3-1]]",) if task == "t02" and start > 225 else ()))
            story.call(task, step, start, end, marks=marks)
    for task, (parked, left) in {"t01": (73, 161), "t02": (81, 161.2), "t03": (86, 161.4)}.items():
        story.at(parked - 0.2, f"worker/{task}", "worker.parked", task=task, step=3)
        story.at(left, f"worker/{task}", "worker.unparked", task=task, step=3)
    _controls(story)
    return finish(story) if trees else story


def finish(story: Story, quiet: float = TREES["pause@1:quiet"]) -> Story:
    """Read the worktrees, from the checkpoints that the story has by then; at quiet as late as `quiet`."""
    for when, s in {**TREES, "pause@1:quiet": quiet}.items():
        story.trees(when, s)
    return story


def _world(story: Story) -> None:
    sped = story.speed
    config = {
        "speed": sped, "L_s": 30 / sped, "grace_s": 40 / sped, "kill_after_s": 10 / sped,
        "sweep_after_s": 60 / sped, "workers": 3, "tasks": ["t01", "t02", "t03"],
        "main_ref": "refs/heads/main",
        "branch_prefix": f"agent/{RUN}/", "tag_prefix": f"abandoned/{RUN}/", "new_tasks_max": 1,
        "deterministic": True,
        "marks": {
            "objective": "[[objective-1]]", "instruction": "[[instruction-3]]",
            "deltas": {"t02": "[[delta-3-1]]"},
        },
    }  # fmt: skip
    story.at(-20, "driver", "run.begin", run=RUN, drill="tabletop", subject="reference", config=config)
    story.at(-19, "keeper", "keeper.begin", pid=80, subreaper=True, cgroup="/sys/x", exit_info=True)
    story.process(2, 90, -18, 408.5, role="service", cmdline=["python3", "provider.py"])
    story.process(3, 91, -18, 408.5, role="service", cmdline=["python3", "bystander.py"])
    story.process(1, 100, -12, 404, role="coordinator", cmdline=["python3", "coordinator.py"], status=1)
    story.at(-17, "provider", "provider.begin", port=4711)
    story.at(-17, "bystander-a", "bystander.begin", name="a", pid=91)
    story.at(0, "driver", "fleet.at-work", workers=3)
    for s in range(-10, 410, 10):
        p99 = 500 * 40 / sped
        story.at(s, "canary", "canary", window_s=10 / sped, n=25, p50_us=60, p99_us=p99, max_us=p99)
    for task, s in (("t01", 45), ("t02", 51), ("t03", 54)):
        update = {
            "ref": f"refs/heads/agent/{RUN}/{task}",
            "old": "0",
            "new": "x",
            "pusher": {"pid": PIDS[task]},
        }
        story.at(s, f"origin-{s}-{PIDS[task]}", "ref.update", **update, outcome="attempted")
        story.at(s + 0.1, f"origin-{s}-{PIDS[task]}", "ref.update", **update, outcome="accepted")


def _controls(story: Story) -> None:
    expected = {"t01": "keep", "t02": "modify", "t03": "drop"}
    story.control("pause", 1, 60, ack=(87, "paused"))
    story.control("resume", 2, 160, ack=(161, "running"))
    story.control("redirect", 3, 220, ack=(223, "redirected"), instruction={}, expected=expected)
    story.at(222, "driver", "claim.table", n=1, tasks=dict(expected), written_t=story.stamp(222))
    story.at(224.8, "worker/t02", "message", task="t02", what="delta", text="[[delta-3-1]]")
    story.control("abort", 4, 340, ack=(365, "aborted"))
    story.refs("redirect@3:issue", 220.05)
    for when in ("abort@4:issue", "abort@4:sweep", "end"):
        story.refs(when, TREES[when], tags=("t03",))
    story.at(400, "keeper", "audit", when="abort@4:sweep", alive=[1])
    story.at(401, "driver", "claim.sweep", alive=[], dirty=[])
    story.at(402, "driver", "claim.usage", tokens=sum(len(c.split(",")) for c in CALLS.values()) * 520)
    story.at(402.5, "driver", "claims.collected", final=True)
    story.at(403, "driver", "claim.state", state="aborted")
    story.at(404.5, "driver", "subject.exit", status=1)
    story.at(407, "keeper", "audit", when="end", alive=[])
    story.at(408, "keeper", "keeper.kill", why="the drill is over", count=0)
    story.at(408.2, "bystander-a", "bystander.end", name="a")
    story.at(409, "keeper", "keeper.end", why="done", left=[])
    story.at(409.5, "provider", "provider.end", requests=28)
    story.at(410, "driver", "run.end", reason="done")
