"""What a run is made of, written down before it starts: run.begin for scoring, environment and subject for people."""

import platform
import shlex
import time
from pathlib import Path
from typing import Any

import psutil

from drills import world as worlds
from drills.adapters.base import Adapter
from drills.script import Drill
from drills.version import VERSION
from drills.world import World


def run_begin(drill: Drill, world: World, adapter: Adapter) -> dict[str, Any]:
    """The fields of run.begin. `config` is everything that scoring needs to know; durations in real seconds."""
    real = drill.real
    said = [step.instruction for step in drill.controls if step.instruction]
    drops = [task for one in said for task, word in worlds.expected_table(drill, one).items() if word == "drop"]
    adds = [add for one in said for add in one.adds]
    config = {
        "speed": drill.speed,
        "L_s": real(drill.longest_call),
        "grace_s": real(drill.abort.grace),
        "kill_after_s": real(drill.abort.kill_after),
        "sweep_after_s": real(drill.abort.sweep_after),
        "workers": drill.fleet.workers,
        "tasks": list(drill.task_ids),
        "main_ref": "refs/heads/main",
        "branch_prefix": world.branch_prefix,
        "tag_prefix": f"abandoned/{world.run_id}/",
        "wall_offset_ns": time.time_ns() - time.monotonic_ns(),
        "new_tasks_max": max(len(drops), len(adds)),
        "marks": {
            "instruction": [world.mark("instruction", n) for n in range(1, len(said) + 1)],
            "deltas": [
                world.mark("delta", f"{n}.{index}")
                for n, one in enumerate(said, 1)
                for index in range(1, len(one.changes) + 1)
            ],
        },
        "success_exit": list(adapter.capabilities.success_exit),
        "pause_means": adapter.capabilities.pause_means,
    }
    return {"run": world.run_id, "drill": drill.name, "subject": adapter.name, "config": config, "version": VERSION}


def write(drill: Drill, world: World, adapter: Adapter, repo: Path | None) -> None:
    """Write environment.json and subject.json. Nothing of the user's environment goes in but versions and sizes."""
    subject = getattr(adapter, "spec", adapter.name)
    again = ["stopdrill", "run", str(world.run_dir / "drill.toml"), "--subject", subject]
    worlds.write_json(
        world.run_dir / "environment.json",
        {
            "stopdrill": VERSION,
            "command": shlex.join([*again, *(["--repo", str(repo)] if repo else [])]),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "git": worlds.git_version(),
            "cpus": psutil.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "load_average": list(psutil.getloadavg()),
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "repo": "a throwaway clone" if repo else "generated sample",
            "workers": drill.fleet.workers,
        },
    )
    worlds.write_json(
        world.run_dir / "subject.json",
        {"name": adapter.name, "controls": dict(adapter.capabilities.controls)},
    )
