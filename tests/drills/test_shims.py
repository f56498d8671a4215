"""Shims on the PATH: what is installed, and that an unchanged fan-out script runs with it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from drills import UsageProblem, shims
from tests.fakes.shim_yard import ShimYard

FAN_OUT = """\
#!/bin/bash
for t in "$1"/t*; do
    (cd "$t" && claude -p "Migrate every dependency of your package." --output-format json > out.json) &
done
wait
"""


@pytest.mark.real
def test_an_unchanged_fan_out_script_runs_with_shims(tmp_path: Path) -> None:
    """Hazard: the commonest coordinator of all can't be drilled without being rewritten."""
    with ShimYard(tmp_path, steps=2) as yard:
        script = yard.root / "fan-out.sh"
        script.write_text(FAN_OUT)
        yard.done("bash", str(script), str(yard.worktrees), cwd=yard.root)
        for task in ("t02", "t03"):
            told = json.loads((yard.worktrees / task / "out.json").read_text())
            assert (told["result"], told["is_error"]) == (f"{task}: step 2 of 2 is done, all steps are done.", False)
        assert sorted(yard.told("worker.begin", "task", "attempt")) == [("t02", 1), ("t03", 1)]
        assert {how for (how,) in yard.told("shim", "how")} == {"folder"}


def test_each_name_is_an_executable_of_two_lines(tmp_path: Path) -> None:
    """Hazard: a blank or a quote in a folder's or a program's name."""
    folder = tmp_path / "it's a folder"
    shims.install(folder, ("claude", "my agent", "o'agent"))
    assert sorted(path.name for path in folder.iterdir()) == ["claude", "my agent", "o'agent"]
    for path in folder.iterdir():
        first, second = path.read_text().splitlines()
        assert (first, second[:5]) == ("#!/bin/sh", "exec ")
        assert os.access(path, os.X_OK)
        said = subprocess.run([path, "--help"], capture_output=True, text=True, check=True, timeout=20, env={})
        assert said.stdout.startswith(f"usage: {path.name} ")


def test_installing_again_changes_nothing(tmp_path: Path) -> None:
    """Hazard: a second run of the same folder fails."""
    shims.install(tmp_path)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    shims.install(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
    assert before.keys() == set(shims.NAMES)


@pytest.mark.parametrize("name", ["", "a/b", "../claude", ".hidden", "-p", "a\0b"])
def test_a_name_that_can_be_no_program_is_refused(tmp_path: Path, name: str) -> None:
    """Hazard: a file written outside the folder."""
    with pytest.raises(UsageProblem, match="name of a shim"):
        shims.install(tmp_path / "bin", (name,))
