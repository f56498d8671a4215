"""`stopdrill init`: look at a folder, and write the subject file and the CI snippet that a person would start from.

What is recognised is filled in, and the file says from what; what is not is left as a comment to uncomment. Nothing
that exists is ever overwritten, and nothing in the folder is run.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drills.errors import UsageProblem
from drills.shims import NAMES

_LOOKED_AT_MAX = 2000
_BYTES_MAX = 256 * 1024
_SCRIPTS = (".sh", ".bash", ".py", ".js", ".mjs", ".ts", ".rb", ".go", ".mk", "")
_SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", "stopdrill-runs", "dist", "build"})
_CALLS = {name: re.compile(rf"(?<![\w/.-]){re.escape(name)}\s+(?:-|exec\b|run\b|[\"'$])") for name in NAMES}
_CONTROL = re.compile(r"(?i)(^|[/_.-])(control|stop|pause|hold|kill-?switch)([/_.-]|$)")


@dataclass(frozen=True)
class Seen:
    """What was recognised in a folder; paths are relative to it."""

    scripts: tuple[tuple[str, tuple[str, ...]], ...]
    """Scripts that call agent CLIs, with the names that they call; the likeliest coordinator first."""
    manifest: str | None
    control: str | None


def look(folder: Path) -> Seen:
    """Look at a folder without running anything. Raises UsageProblem when it is none."""
    if not folder.is_dir():
        raise UsageProblem(f"{folder}: no such folder")
    scripts: list[tuple[str, tuple[str, ...]]] = []
    manifest = control = None
    for name in _files(folder):
        if "manifest" in name and name.endswith(".jsonl"):
            manifest = manifest or name
        elif _CONTROL.search(name) and not name.endswith((".sh", ".py", ".md", ".toml", ".yml", ".yaml")):
            control = control or name
        called = _called(folder / name)
        if called:
            scripts.append((name, called))
    # The coordinator is mostly the script nearest to the top; what it calls lies deeper.
    scripts.sort(key=lambda item: (item[0].count("/"), -len(item[1]), item[0]))
    return Seen(tuple(scripts), manifest, control)


def _files(folder: Path) -> Iterator[str]:
    seen = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            seen += 1
            if seen > _LOOKED_AT_MAX:
                return
            yield str((Path(root) / name).relative_to(folder))


def _called(path: Path) -> tuple[str, ...]:
    """Names of agent CLIs that a script calls; none when it is no script, or cannot be read."""
    try:
        if path.suffix not in _SCRIPTS or path.stat().st_size > _BYTES_MAX:
            return ()
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ()
    if path.suffix == "" and path.name != "Makefile" and not text.startswith("#!"):
        return ()
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return tuple(name for name, pattern in _CALLS.items() if any(pattern.search(line) for line in lines))


def write(folder: Path) -> list[str]:
    """Write `subject.toml` and `stopdrill-ci.yml` into `folder`; returns what was done, in sentences.

    Raises UsageProblem, and writes nothing, when there is a subject file already.
    """
    seen = look(folder)
    subject, snippet = folder / "subject.toml", folder / "stopdrill-ci.yml"
    if subject.exists():
        raise UsageProblem(f"{subject} exists already and is never overwritten; move it away, or edit it")
    said = []
    try:
        with subject.open("x", encoding="utf-8") as file:
            file.write(subject_text(seen))
        said.append(f"wrote {subject}: {_recognised(seen)}")
        if snippet.exists():
            said.append(f"left {snippet} as it is")
        else:
            snippet.write_text(CI_SNIPPET, encoding="utf-8")
            said.append(f"wrote {snippet}: a scheduled drill for GitHub Actions; move it to .github/workflows")
    except OSError as error:
        raise UsageProblem(f"{folder}: cannot be written to: {error}") from None
    said.append(f"next: look through it, then `stopdrill run small --subject {subject}`")
    return said


def _recognised(seen: Seen) -> str:
    parts = []
    if seen.scripts:
        name, called = seen.scripts[0]
        parts.append(f"{name} calls {', '.join(called)} and was taken for the coordinator")
    if seen.manifest:
        parts.append(f"{seen.manifest} was taken for its manifest")
    if seen.control:
        parts.append(f"{seen.control} was taken for its control file")
    return "; ".join(parts) or "nothing was recognised, so the start command is for you to fill in"


def subject_text(seen: Seen) -> str:
    """The commented subject file for what was seen."""
    script = seen.scripts[0][0] if seen.scripts else None
    start = _quoted(f"./{script}") if script else '"./your-coordinator"'
    why = f"{script} calls {', '.join(seen.scripts[0][1])}" if script else "fill in what starts your fleet"
    return _TEMPLATE.format(
        start=start,
        why=why,
        manifest=_or_comment(seen.manifest, "[manifest]                # one JSON line for each worker", "file"),
        control=_control(seen.control),
    )


def _control(control: str | None) -> str:
    if control is None:
        return _ABORT_BY_SIGNAL
    return _ABORT_BY_FILE.format(file=_quoted(control))


def _or_comment(path: str | None, header: str, key: str) -> str:
    if path is None:
        return f'# {header}\n# {key} = "run-manifest.jsonl"'
    return f"{header}\n{key} = {_quoted(path)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_ABORT_BY_SIGNAL = """\
[abort]                   # the process that the start command has become is sent this
signal = "TERM\""""

_ABORT_BY_FILE = """\
[abort]                   # recognised as a control file; what does your fleet look for in it?
file = {file}
text = "STOP\\n\""""

_TEMPLATE = """\
# What stopdrill has to know of your coordinator, from outside. `stopdrill run small --subject subject.toml` drills it.
# A control that is left out fails its row with "no such control". All keys and placeholders: docs/subject-file.md.

name = "ours"

[start]                   # {why}
command = [{start}]
# It is started in the run's clone of the repository; `--repo .` makes that a clone of yours.
# In the drill, claude, codex, gemini, opencode, aider and cursor-agent are simulated workers on your PATH.
# Or start them yourself: command = ["./fleet.sh", "{{repo}}", "{{worktrees}}", "{{worker}}"]

# [pause]                 # a command, a signal, a file or an HTTP request, and what counts as acknowledged
# file = "{{control}}/run"
# text = "HOLD\\n"
# state = "paused"        # a claim: it is held against the truth

# [resume]
# file = "{{control}}/run"
# text = "RUN\\n"

# [redirect]
# command = ["./redirect.sh", "{{instruction_file}}"]

{control}

{manifest}

# [status]
# command = ["./status.sh"]
# json = "state"
"""

CI_SNIPPET = """\
# A drill every night. Exit status 0 pass, 1 fail, 3 investigate, 4 broken: anything but 0 turns the job red.
name: stop drill
on:
  schedule: [{cron: "17 3 * * *"}]
  workflow_dispatch:
permissions:
  contents: read
jobs:
  drill:
    runs-on: ubuntu-latest
    timeout-minutes: 15
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install stopdrill
      - run: stopdrill run small --subject subject.toml --out runs
      - if: always()
        uses: actions/upload-artifact@v4
        with: {name: stop-drill, path: "runs/*/report.html"}
"""
