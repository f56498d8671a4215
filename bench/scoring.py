"""What scoring and writing events cost, against the JSON work alone that neither can do without.

Ratios in one run, the two sides interleaved, the best of several rounds each: on a shared machine only that
is comparable. The history is synthetic: sixteen workers with a pause, a redirect and an abort, so that
every check has something to look at.
"""

import json
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench.ratio import Ratio, show
from scoring.history import merge
from scoring.journal import Journal
from scoring.judge import judge
from scoring.rubric import Rubric

WORKERS = 16
SPEED = 40.0
STEP_S = 30.0
ROUNDS = 5


def synthetic(events: int = 100_000) -> dict[str, bytes]:
    """The files of a bundle with about so many events."""
    steps = events // (WORKERS * 12)
    lines: dict[str, list[tuple[int, str]]] = {}

    def at(s: float, source: str, kind: str, **data: Any) -> None:
        t = round((s + 100) / SPEED * 1e9)
        line = json.dumps({"t": t, "kind": kind, **data}, separators=(",", ":"))
        lines.setdefault(source, []).append((t, line))

    end = steps * STEP_S
    _world(at, end)
    for number in range(1, WORKERS + 1):
        task, pid = f"t{number:02}", 4000 + number
        me = {"task": task, "attempt": 1, "pid": pid}
        worker, tools = f"worker-{task}-1-{pid}", f"tools-{task}-1-{pid}"
        at(-8, "keeper", "proc.start", proc=pid, pid=pid, ppid=100, role="run", cmdline=["worker"], task=task)
        at(-7, worker, "worker.begin", **me, step=1)
        entry = {"run_id": "r1", "task_id": task, "attempt": 1, "pid": pid}
        at(-6, "driver", "claim.manifest", entry=entry)
        for step in range(1, steps + 1):
            _step(at, worker, tools, task, pid, step, (step - 1) * STEP_S + number / 4)
        at(end + 2, worker, "worker.end", **me, reason="stop")
        at(end + 3, "keeper", "proc.end", proc=pid, pid=pid, status=0, signal=None)
    return {source: b"".join(line.encode() + b"\n" for _, line in sorted(found)) for source, found in lines.items()}


def _world(at: Callable[..., None], end: float) -> None:
    tasks = [f"t{number:02}" for number in range(1, WORKERS + 1)]
    config = {
        "speed": SPEED, "L_s": 30 / SPEED, "grace_s": 40 / SPEED, "kill_after_s": 10 / SPEED,
        "sweep_after_s": 60 / SPEED,
        "workers": WORKERS, "tasks": tasks, "branch_prefix": "agent/r1/", "tag_prefix": "abandoned/r1/",
    }  # fmt: skip
    at(-20, "driver", "run.begin", run="r1", drill="bench", subject="synthetic", config=config)
    at(-19, "keeper", "keeper.begin", pid=80, subreaper=True, cgroup=None, exit_info=True)
    at(-17, "provider", "provider.begin", port=1)
    at(0, "driver", "fleet.at-work", workers=WORKERS)
    controls = (("pause", 0.3), ("resume", 0.4), ("redirect", 0.6), ("abort", 0.99))
    for n, (control, share) in enumerate(controls, 1):
        at(
            end * share,
            "driver",
            "control.issue",
            control=control,
            n=n,
            scope="run",
            expected={"t01": "keep"},
        )
        at(end * share + 0.1, "driver", "control.delivered", control=control, n=n)
    for s in range(-10, round(end) + 60, 40):
        at(s, "canary", "canary", window_s=1.0, n=95, p50_us=60, p99_us=500, max_us=900)
    at(end + 50, "keeper", "keeper.end", why="done", left=[])
    at(end + 60, "driver", "run.end", reason="done", sources={})


def _step(at: Callable[..., None], worker: str, tools: str, task: str, pid: int, step: int, s: float) -> None:
    call, req = f"{task}.1/{step}", f"{task}-{step}"
    at(s, "provider", "model.open", req=req, run="r1", task=task, tokens_in=400, marks=["[[objective-1]]"])
    for part in range(4):
        at(s + 0.5 + part / 4, "provider", "model.chunk", req=req, tokens=30)
    at(s + 2, "provider", "model.close", req=req, tokens_out=120, outcome="done")
    at(s + 3, worker, "tool.issue", call=call, task=task, attempt=1, step=step, pid=pid, child=False)
    at(s + 3.1, tools, "tool.start", call=call, pid=pid)
    at(s + 25, tools, "tool.end", call=call, pid=pid)
    at(s + 25.1, worker, "tool.return", call=call, changed=[f"packages/{task}/deps.lock"])
    at(s + 25.4, worker, "checkpoint", task=task, step=step)
    at(s + 25.5, worker, "boundary", task=task, step=step, saw="RUN")


def _best(ours: Callable[[], object], yardstick: Callable[[], object], rounds: int = ROUNDS) -> tuple[float, float]:
    """CPU seconds of the best round of each, the two interleaved."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for side, work in enumerate((ours, yardstick)):
            begin = time.process_time()
            work()
            best[side] = min(best[side], time.process_time() - begin)
    return best[0], best[1]


def scoring_cost(events: int = 100_000) -> Ratio:
    """Merging, building and judging a history, against json.loads of its lines."""
    sources = synthetic(events)
    lines = [line for text in sources.values() for line in text.splitlines()]
    ours, json_s = _best(lambda: judge(merge(sources), Rubric()), lambda: [json.loads(line) for line in lines])
    unit = f"judge {len(lines):,} events {ours * 1e3:.0f} ms CPU / json.loads {json_s * 1e3:.0f} ms"
    return Ratio("scoring", ours / json_s, 3.0, unit)


def event_cost(events: int = 20_000) -> Ratio:
    """Writing an event to its file, against json.dumps of the same event."""
    fields = {"call": "t01.1/17", "task": "t01", "attempt": 1, "step": 17, "pid": 4711, "child": False}
    fields |= {"note": "x" * 70}
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(folder, "bench")

        def write() -> None:
            for _ in range(events):
                journal.write("tool.issue", **fields)

        def dumps() -> None:
            for _ in range(events):
                json.dumps({"t": time.monotonic_ns(), "kind": "tool.issue", **fields})

        ours, json_s = _best(write, dumps)
        journal.close()
    unit = f"Journal.write {ours / events * 1e6:.1f} µs / json.dumps {json_s / events * 1e6:.1f} µs"
    return Ratio("event", ours / json_s, 2.0, unit)


def measure() -> list[Ratio]:
    """Everything that is measured here."""
    return [scoring_cost(), event_cost()]


if __name__ == "__main__":
    print(show(measure()))
