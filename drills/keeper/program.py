"""The program: its arguments, the cgroup, then the warden around the keeper.

    python -I -S -E drills/keeper/__main__.py --run RUN --events DIR [--worktrees DIR] [--tell FD] [--no-cgroup]

Parsed by hand, because argparse alone would cost a quarter of the start-up time. Exit status: 0 an orderly
end, 2 usage, 70 the keeper died and the warden cleaned up, 74 the journal could not be written and the run
was ended.
"""

import re
import sys

from . import cgroup, warden
from .keeper import Keeper, Options

EXIT_USAGE = 2
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # it becomes the name of a folder


def parse(argv: list[str]) -> Options:
    """The options; ValueError with a sentence when they make no sense."""
    given: dict[str, str] = {}
    use_cgroup = True
    words = iter(argv)
    for word in words:
        if word == "--no-cgroup":
            use_cgroup = False
        elif word in ("--run", "--events", "--worktrees", "--tell"):
            given[word] = next(words, "")
        else:
            raise ValueError(f"unknown argument {word!r}")
    run, events = given.get("--run", ""), given.get("--events", "")
    if not _RUN_ID.fullmatch(run) or not events:
        raise ValueError("usage: --run RUN --events DIR [--worktrees DIR] [--tell FD] [--no-cgroup]")
    tell = given.get("--tell", "")
    return Options(run, events, given.get("--worktrees") or None, use_cgroup, int(tell) if tell.isdigit() else None)


def main(argv: list[str]) -> int:
    """Run it; the exit status."""
    try:
        options = parse(argv)
    except ValueError as error:
        sys.stderr.write(f"keeper: {error}\n")
        return EXIT_USAGE
    group, why = cgroup.make(options.run) if options.use_cgroup else (None, "not wanted")
    return warden.guard(lambda lifeline: Keeper(options, group, why, lifeline).run(), group)
