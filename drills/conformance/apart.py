"""`check-adapter` in a process of its own: `python -m drills.conformance.apart NAME`, both of its ends.

An adapter that is being tried may block its interpreter or end it. Then what is known by then is one finding, named
after the scene and the file that has what it wrote; its fleet is ended by its warden.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drills.adapters import own_process, registry
from drills.adapters.subjects import adapter_for, python_spec
from drills.conformance import CHECKS, Finding, check
from drills.errors import HarnessTrouble, UsageProblem

MODULE = "drills.conformance.apart"
WITHIN_S = 300.0


def check_apart(name: str, out: Path, within_s: float = WITHIN_S) -> tuple[Finding, ...]:
    """All findings about the adapter of a name. Raises UsageProblem for a bad name, HarnessTrouble for our own part."""
    log = out / "adapter.txt"
    process = own_process.launch(MODULE, name, log=log)
    hung = False
    try:
        said, _ = process.communicate(own_process.hello(name=name, out=str(out)), within_s)
    except subprocess.TimeoutExpired as error:
        said, hung = error.stdout or b"", True
    finally:
        own_process.end(process)
    messages = [json.loads(line) for line in said.split(b"\n")[:-1]]
    last: dict[str, Any] = messages[-1] if messages else {}
    if "problem" in last:
        raise UsageProblem(last["problem"])
    if "trouble" in last:
        raise HarnessTrouble(last["trouble"])
    if "findings" in last:
        return tuple(Finding(**finding) for finding in last["findings"])
    where = f"in scene {last['scene']}" if "scene" in last else "when it was made"
    how = f"did not come back within {within_s:g} s" if hung else f"ended (status {process.returncode})"
    return _cut_short(f"the process that it runs in {how} {where}; what it wrote is in {log}")


def _cut_short(why: str) -> tuple[Finding, ...]:
    return tuple(
        Finding(one.id, *((False, why) if one.id == "process" else (None, "not tried to the end: see process")))
        for one in CHECKS.values()
    )


def maker(name: str) -> Callable[[], Any]:
    """What makes the adapter of a name; whatever `module:attr` gives is taken, so that it can be told what it lacks."""
    spec = python_spec(name)
    return (lambda: registry.load(spec)) if spec is not None else (lambda: adapter_for(name, in_process=True))


def main() -> None:
    """The process itself: says each scene, then the findings."""
    _, sink, said = own_process.take_stdio()

    def say(**message: Any) -> None:
        sink.write(json.dumps(message).encode() + b"\n")

    try:
        findings = check(maker(said["name"]), Path(said["out"]), lambda scene: say(scene=scene))
    except UsageProblem as problem:
        say(problem=str(problem))
    except HarnessTrouble as trouble:
        say(trouble=str(trouble))
    else:
        say(findings=[asdict(finding) for finding in findings])
    sys.stdout.flush()


if __name__ == "__main__":
    main()
