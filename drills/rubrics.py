"""Reading a rubric file: thresholds are the user's to tune, rows are not."""

import tomllib
from pathlib import Path

from drills.errors import UsageProblem
from scoring.rubric import Rubric, RubricError


def load_rubric(path: Path | None) -> Rubric:
    """The rubric in `path`, or the defaults. Raises UsageProblem with every error."""
    if path is None:
        return Rubric()
    try:
        return Rubric.from_mapping(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageProblem(f"{path}: not valid TOML: {error}") from None
    except RubricError as error:
        raise UsageProblem(str(error)) from None
