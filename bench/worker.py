"""What it costs to start a simulated worker, against a bare isolated interpreter that does nothing."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.ratio import Ratio
from drills import script, world
from drills.world import worker_argv

ROUNDS = 10


def _cpu_s(argv: list[str], cwd: Path, env: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=cwd, env=env, check=True, capture_output=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure() -> list[Ratio]:
    """A worker whose task has no step, from start to goodbye (one `git log` included), in turn with the yardstick."""
    drill, _ = script.load(script.find("small"))
    with tempfile.TemporaryDirectory() as folder:
        made = world.create(drill, Path(folder))
        plan = world.plan(made, drill, ())
        plan["tasks"]["t01"]["steps"] = 0
        made.plan.write_text(json.dumps(plan))
        env = {**made.environment(), "TASK_ID": "t01", "ATTEMPT": "1", "STOPDRILL_PROVIDER": "http://127.0.0.1:1"}
        argv = [*worker_argv(), "--run", made.run_id, "--task", "t01"]
        bare = [sys.executable, "-I", "-S", "-E", "-c", "pass"]
        ours = [_cpu_s(argv, made.repo, env) for _ in range(ROUNDS)]
        yardstick = [_cpu_s(bare, made.repo, dict(os.environ)) for _ in range(ROUNDS)]
    low, bare_low = min(ours), min(yardstick)
    told = f"{low * 1000:.1f} CPU ms to start, look and leave / {bare_low * 1000:.1f} ms bare"
    return [Ratio("worker-start", low / bare_low, 5.0, told)]
