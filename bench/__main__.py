"""`python -m bench [NAME …]`: what stopdrill costs, as ratios within one run, because absolute times mean nothing on a
shared machine. Prints one line for each figure and exits 1 when a goal is missed.
"""

import importlib
import sys
import time

from bench.ratio import Ratio, show

NAMES = ("keeper", "scoring", "report", "worker", "shim")


def main() -> int:
    """Run the benches named on the command line, or all."""
    ratios: list[Ratio] = []
    for name in sys.argv[1:] or NAMES:
        begun = time.monotonic()
        found = importlib.import_module(f"bench.{name}").measure()
        print(f"# {name}: {time.monotonic() - begun:.0f} s", flush=True)
        print(show(found), flush=True)
        ratios += found
    return 0 if all(ratio.met for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
