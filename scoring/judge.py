"""Judging: a history and a rubric in, a scorecard out. (being written)"""

from scoring.history import History
from scoring.rubric import Rubric
from scoring.scorecard import Scorecard


def judge(history: History, rubric: Rubric) -> Scorecard:
    """Everything that one history says, under one rubric. Pure and deterministic."""
    raise RuntimeError("being written")
