"""A bundle: the directory that one run leaves behind, and everything that can be made from it again.

The events are the only truth; scorecard, page and JUnit are derived, and can be derived again on another machine or
under another rubric with the same result. Reading never changes a bundle.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drills.errors import HarnessTrouble, UsageProblem
from scoring.history import History, merge
from scoring.judge import judge
from scoring.rubric import Rubric
from scoring.scorecard import Scorecard


@dataclass(frozen=True)
class Bundle:
    """One bundle on disk."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> "Bundle":
        """A bundle that exists. Raises UsageProblem saying what is missing."""
        if not path.is_dir():
            raise UsageProblem(f"{path}: no such directory; give the folder of a run, the one that holds events/")
        if not (path / "events").is_dir():
            near = sorted(inner.name for inner in path.iterdir() if (inner / "events").is_dir())
            hint = f" Bundles in it: {', '.join(near[-5:])}." if near else ""
            raise UsageProblem(f"{path}: not a bundle, it has no events/ folder.{hint}")
        return cls(path)

    def history(self) -> History:
        """The merged events. Raises UsageProblem when a file cannot be read."""
        try:
            return merge({file.stem: file.read_bytes() for file in sorted((self.path / "events").glob("*.jsonl"))})
        except OSError as error:
            raise UsageProblem(f"{self.path}: its events cannot be read: {error}") from None

    def judge(self, rubric: Rubric) -> Scorecard:
        """Score the stored history; nothing is written."""
        history = self.history()
        if not history.events:
            raise UsageProblem(f"{self.path}: its events/ folder holds no event, so there is nothing to score")
        return judge(history, rubric)

    def write_scorecard(self, scorecard: Scorecard) -> Path:
        """Write scorecard.json and junit.xml."""
        from reports import junit  # here, because a report is not needed to score

        target = self.path / "scorecard.json"
        self._write("scorecard.json", scorecard.dumps())
        self._write("junit.xml", junit.render(scorecard))
        return target

    def write_report(self, scorecard: Scorecard) -> Path:
        """Write report.html."""
        from reports import page  # here, because matplotlib takes a second to import

        self._write("report.html", page.render(self.material(scorecard)))
        return self.path / "report.html"

    def material(self, scorecard: Scorecard) -> Any:
        """Everything that a report shows, read from the bundle."""
        from reports.material import Material
        from scoring.timeline import build

        return Material(
            scorecard=scorecard,
            timeline=build(self.history()),
            environment=self.json("environment.json"),
            subject=self.json("subject.json"),
            drill_text=self.text("drill.toml"),
            git={file.name: self.text(f"git/{file.name}") for file in sorted((self.path / "git").glob("*.txt"))},
            rerun=str(self.json("environment.json").get("command", "stopdrill run")),
        )

    def text(self, name: str) -> str:
        """A text file of the bundle; empty when it is not there, because a run can end before it is written."""
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def json(self, name: str) -> Mapping[str, Any]:
        """A JSON object of the bundle; empty when it is missing or torn."""
        try:
            value = json.loads(self.text(name) or "{}")
        except ValueError:
            return {"unreadable": f"{name} is no JSON"}
        return value if isinstance(value, dict) else {"unreadable": f"{name} holds no object"}

    def _write(self, name: str, text: str) -> None:
        partial = self.path / f"{name}.partial"
        try:
            partial.write_text(text, encoding="utf-8", errors="replace")
            partial.replace(self.path / name)
        except OSError as error:
            raise HarnessTrouble(f"{self.path / name}: cannot be written: {error}") from None
