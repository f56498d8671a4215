"""What a report shows, already read.

Reports are functions of this value: they open no bundle, no repository and no clock, so a stored run can be
shown again, anywhere, with the same bytes. Reading the bundle into a `Material` is the caller's part.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scoring.scorecard import Scorecard
from scoring.timeline import Timeline


@dataclass(frozen=True)
class Material:
    """One run, ready to be shown. Every text in it may come from a worker, and is treated as hostile."""

    scorecard: Scorecard
    timeline: Timeline
    environment: Mapping[str, Any]
    """Where it ran: the content of `environment.json`."""
    subject: Mapping[str, Any]
    """What was drilled: the content of `subject.json`."""
    drill_text: str
    """The drill file as it was written."""
    git: Mapping[str, str]
    """File name below `git/` to its text."""
    rerun: str
    """A command line that runs the same drill again."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """More short lines for the head of the page, label to value, in this order (`started`, `took` …)."""
