"""`python -I -m fakes.coordinators.broken NAME serve --config FILE` runs a broken coordinator."""

import importlib
import sys

from fakes.coordinators.broken import BROKEN, Broken
from fakes.coordinators.broken.ports import RecklessPort
from fakes.coordinators.reference.config import Config
from fakes.coordinators.reference.coordinator import Coordinator
from fakes.coordinators.service import Make, main


def class_of(twin: Broken) -> type[Coordinator]:
    """The coordinator's class; the reference one where only the workers misbehave."""
    if not twin.make:
        return Coordinator
    module, _, name = twin.make.partition(":")
    found: type[Coordinator] = getattr(importlib.import_module(f"fakes.coordinators.broken.{module}"), name)
    return found


def maker(twin: Broken) -> Make:
    """How to make this twin from a configuration."""
    kind = class_of(twin)

    def make(config: Config) -> Coordinator:
        return kind(RecklessPort(config), config.settings, config.tasks)

    return make


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in BROKEN:
        print(f"usage: NAME serve --config FILE, NAME one of: {', '.join(BROKEN)}", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(maker(BROKEN[sys.argv[1]]), sys.argv[2:]))
