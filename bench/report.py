"""What a report of sixteen workers costs, against importing what draws its charts, and how large it is.

The yardstick is the import of matplotlib in a fresh interpreter: nobody who draws a chart can do without it.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.ratio import Ratio
from drills import run

ROUNDS = 3
SECONDS_MAX = 2.0
BYTES_MAX = 1_000_000


def _children_cpu_s(argv: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, capture_output=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure() -> list[Ratio]:
    """Run one tabletop drill, then write its report as a user does, in turn with the yardstick."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = run("tabletop", out=Path(folder)).bundle.path
        pairs, walls = [], []
        for _ in range(ROUNDS):
            begun = time.monotonic()
            ours = _children_cpu_s([sys.executable, "-m", "drills", "report", str(bundle)])
            walls.append(time.monotonic() - begun)
            pairs.append((ours, _children_cpu_s([sys.executable, "-c", "import matplotlib.backends.backend_svg"])))
        size = (bundle / "report.html").stat().st_size
    ours, yardstick = min(pairs)
    return [
        Ratio("report-cpu", ours / yardstick, 8.0, f"{ours:.2f} s for `stopdrill report` / {yardstick:.2f} s import"),
        Ratio("report-seconds", min(walls) / SECONDS_MAX, 1.0, f"{min(walls):.2f} s of {SECONDS_MAX:g} s"),
        Ratio("report-size", size / BYTES_MAX, 1.0, f"{size:,} of {BYTES_MAX:,} bytes"),
    ]
