"""What it costs to start a shim up to its first event, against a bare isolated interpreter that does nothing.

The shim is started as a script does it, through its two lines of shell, and says in its first event how much CPU its
process had used by then, the shell included.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.ratio import Ratio
from drills import script, shims, world

ROUNDS = 20


def _bare_s() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-I", "-S", "-E", "-c", "pass"], check=True, stdin=subprocess.DEVNULL, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure() -> list[Ratio]:
    """Shims that find their task by its worktree, whose tasks have no step, in turn with the yardstick."""
    drill, _ = script.load(script.find("small"))
    with tempfile.TemporaryDirectory() as folder:
        made = world.create(drill, Path(folder))
        plan = world.plan(made, drill, ())
        for task in plan["tasks"].values():
            task["steps"] = 0
        world.write_json(made.plan, plan)
        shims.install(made.bin)
        tree = made.worktrees / "t01"
        tree.mkdir()
        env = {**made.environment(), "STOPDRILL_PROVIDER": "http://127.0.0.1:1"}
        env["PATH"] = f"{made.bin}{os.pathsep}{env['PATH']}"
        argv = ["claude", "-p", "Do the next step.", "--output-format", "json"]
        yardstick = []
        for _ in range(ROUNDS):
            yardstick.append(_bare_s())
            subprocess.run(
                argv, cwd=tree, env=env, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60
            )
        firsts = [json.loads(path.open().readline()) for path in made.events.glob("worker-t01-*.jsonl")]
    assert len(firsts) == ROUNDS
    low, bare_low = min(first["cpu_ms"] for first in firsts), min(yardstick) * 1000
    told = f"{low:.1f} CPU ms up to a shim's first event / {bare_low:.1f} ms bare"
    return [Ratio("shim-start", low / bare_low, 1.3, told)]
