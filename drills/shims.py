"""PATH shims: a folder with one small program for each agent CLI, which starts a simulated worker in its place.

What such a worker understands is told in `fakes.shim`. Here only the programs are written: two lines of shell,
because a `#!` line takes one argument and no blanks, and a folder or an interpreter may have blanks in its name.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import fakes
from drills.errors import UsageProblem

NAMES = ("claude", "codex", "gemini", "opencode", "aider", "cursor-agent")
"""The CLIs whose command lines the shims know. Any other name gets what most CLIs have in common."""


def install(folder: Path, names: Sequence[str] = NAMES) -> None:
    """Write one executable for each name. Raises UsageProblem for a name that can't be one."""
    folder.mkdir(parents=True, exist_ok=True)
    program = Path(fakes.__file__).parent / "shim" / "__main__.py"
    for name in names:
        if not name or "/" in name or "\0" in name or name.startswith((".", "-")):
            raise UsageProblem(f"{name!r} can't be the name of a shim: it must be the plain name of a program")
        words = [sys.executable, "-I", "-S", "-E", str(program), name]
        shim = folder / name
        shim.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        shim.chmod(0o755)
