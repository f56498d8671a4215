"""`stopdrill init` fills in what it recognises, writes a file that is valid, and overwrites nothing."""

from pathlib import Path

import pytest

from drills import UsageProblem, init
from drills.adapters import subject_file


def folder(tmp_path: Path, files: dict[str, str]) -> Path:
    """A user's folder with these files."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "called"),
    [
        ("fan.sh", '#!/bin/bash\nfor t in a b; do claude -p "do $t" & done; wait\n', ("claude",)),
        ("run.py", 'subprocess.run(f"codex exec {task}", shell=True)\n', ("codex",)),
        ("Makefile", "all:\n\tgemini -p hello\n", ("gemini",)),
        ("both.sh", "claude --print x\nopencode run y\n", ("claude", "opencode")),
    ],
)
def test_scripts_that_call_agent_clis_are_recognised(
    tmp_path: Path, name: str, text: str, called: tuple[str, ...]
) -> None:
    """Hazard: the user has to write down what stands in their script already."""
    assert init.look(folder(tmp_path, {name: text})).scripts == ((name, called),)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.md", "claude -p is nice\n"),
        ("talk.sh", "# claude -p would go here\necho hello\n"),
        ("deep.sh", "claudette -p x\nmy/claude -p x\n"),
        ("node_modules/x/run.sh", "claude -p x\n"),
        ("binary.sh", "\x00\x01"),
    ],
)
def test_what_only_looks_like_a_call_is_left_alone(tmp_path: Path, name: str, text: str) -> None:
    """Hazard: a README is taken for the coordinator."""
    assert init.look(folder(tmp_path, {name: text})).scripts == ()


def test_what_is_written_is_a_valid_subject_file_with_what_was_seen(tmp_path: Path) -> None:
    """Hazard: the first thing that a new user is given is refused."""
    place = folder(tmp_path, {"fleet.sh": "claude -p x\n", "run-manifest.jsonl": "", "state/control": "RUN\n"})
    said = init.write(place)
    subject = subject_file.load(place / "subject.toml")
    assert subject.start.command == ("./fleet.sh",)
    assert subject.manifest is not None and subject.manifest.file == "run-manifest.jsonl"
    assert subject.abort is not None and subject.abort.file == "state/control"
    assert "fleet.sh calls claude" in said[0] and (place / "stopdrill-ci.yml").exists()


def test_an_empty_folder_gets_a_file_to_fill_in(tmp_path: Path) -> None:
    """Hazard: nothing recognised, nothing written, nothing said."""
    said = init.write(tmp_path)
    assert "nothing was recognised" in said[0]
    assert subject_file.load(tmp_path / "subject.toml").abort is not None


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    """Hazard: a second `init` in the wrong folder costs an afternoon's subject file."""
    place = folder(tmp_path, {"subject.toml": "mine\n", "stopdrill-ci.yml": "mine too\n"})
    with pytest.raises(UsageProblem, match="never overwritten"):
        init.write(place)
    (place / "subject.toml").unlink()
    assert any("left" in line for line in init.write(place))
    assert (place / "stopdrill-ci.yml").read_text() == "mine too\n"
    with pytest.raises(UsageProblem, match="no such folder"):
        init.write(tmp_path / "nowhere")
