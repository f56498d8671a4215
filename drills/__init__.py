"""Running: drill scripts, the world, adapters, observers, the command line. The package that users import.

    from drills import run
    result = run("tabletop", "reference")
    assert result.exit_status == 0, result.scorecard

Import names here are plain words, so a user's own `fakes.py` or `reports/` can stand in front of ours. That is checked
once, at import, because otherwise it would show as an odd AttributeError far away. Names are loaded when first asked
for: `stopdrill --help` should not wait for matplotlib.
"""

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drills.adapters.base import Ack, BaseAdapter, Capabilities, Claims, Redirect, Site, Table
    from drills.api import Result, run, run_async
    from drills.bundle import Bundle
    from drills.errors import HarnessTrouble, UsageProblem

_SIBLINGS = ("fakes", "reports", "scoring")
_HOMES = {
    "Ack": "drills.adapters.base",
    "BaseAdapter": "drills.adapters.base",
    "Bundle": "drills.bundle",
    "Capabilities": "drills.adapters.base",
    "Claims": "drills.adapters.base",
    "HarnessTrouble": "drills.errors",
    "Redirect": "drills.adapters.base",
    "Result": "drills.api",
    "Site": "drills.adapters.base",
    "Table": "drills.adapters.base",
    "UsageProblem": "drills.errors",
    "run": "drills.api",
    "run_async": "drills.api",
}


def _check_siblings() -> None:
    """Raise ImportError naming the file that stands in front of one of our packages."""
    ours = Path(__file__).resolve().parent.parent
    for name in _SIBLINGS:
        spec = importlib.util.find_spec(name)
        where = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if where is None or where.parent.parent != ours:
            raise ImportError(
                f"stopdrill needs its own package {name!r} from {ours / name}, but {where or 'nothing'} stands in front"
                f" of it on sys.path; rename that file or run from another folder"
            )


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'drills' has no attribute {name!r}")


_check_siblings()

__all__ = [
    "Ack", "BaseAdapter", "Bundle", "Capabilities", "Claims", "HarnessTrouble", "Redirect", "Result", "Site", "Table",
    "UsageProblem", "run", "run_async",
]  # fmt: skip
