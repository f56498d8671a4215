"""From a subject's name to its adapter: the bundled ones, and an author's own (`drills.adapters.registry`)."""

import difflib
from pathlib import Path

from drills.adapters import registry
from drills.adapters.base import Adapter
from drills.adapters.bundled import BundledAdapter
from drills.adapters.remote import remote_adapter
from drills.errors import UsageProblem
from fakes.coordinators.broken import BROKEN


def names() -> dict[str, str]:
    """Subject name to a line about it."""
    return {
        "reference": "the reference coordinator: control file, manifest, ladder, sweep",
        **{f"broken:{name}": twin.summary for name, twin in BROKEN.items()},
        **{name: f"{point.value}, from an installed package" for name, point in registry.entry_points().items()},
    }


def python_spec(name: str) -> str | None:
    """`module:attr` of an author's adapter in Python; None for what is bundled, and for a subject file."""
    bundled = name == "reference" or name.startswith("broken:")
    return None if bundled or name.endswith(".toml") else registry.spec_of(name)


def adapter_for(name: str, in_process: bool = False) -> Adapter:
    """The adapter of a subject, or of a subject file. Raises UsageProblem with what there is.

    An author's own (`module:attr`, or the name of an entry point) runs in a process of its own, unless `in_process`.
    """
    if name == "reference":
        return BundledAdapter()
    if name.startswith("broken:") and name.removeprefix("broken:") in BROKEN:
        return BundledAdapter(BROKEN[name.removeprefix("broken:")])
    if name.endswith(".toml") or Path(name).is_file():
        # Only here, because a bundled subject must not pay for an HTTP client.
        from drills.adapters.toml_subject import TomlAdapter

        return TomlAdapter.of(Path(name))
    spec = python_spec(name)
    if spec is not None:
        return registry.load_adapter(spec) if in_process else remote_adapter(spec)
    known = list(names())
    close = difflib.get_close_matches(name, known, 1, 0.5)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise UsageProblem(
        f"no subject named {name!r}{hint} `stopdrill catalogue subjects` lists them."
        f" Or give a .toml file, or module:attr for an adapter in Python."
    )
