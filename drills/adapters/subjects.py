"""From a subject's name to its adapter."""

import difflib

from drills.adapters.base import Adapter
from drills.adapters.bundled import BundledAdapter
from drills.errors import UsageProblem
from fakes.coordinators.broken import BROKEN


def names() -> dict[str, str]:
    """Subject name to a line about it."""
    return {
        "reference": "the reference coordinator: control file, manifest, ladder, sweep",
        **{f"broken:{name}": twin.summary for name, twin in BROKEN.items()},
    }


def adapter_for(name: str) -> Adapter:
    """The adapter of a subject. Raises UsageProblem with what there is."""
    if name == "reference":
        return BundledAdapter()
    if name.startswith("broken:") and name.removeprefix("broken:") in BROKEN:
        return BundledAdapter(BROKEN[name.removeprefix("broken:")])
    known = list(names())
    close = difflib.get_close_matches(name, known, 1, 0.5)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise UsageProblem(f"no subject named {name!r}{hint} `stopdrill catalogue subjects` lists them.")
