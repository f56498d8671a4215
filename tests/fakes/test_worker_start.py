"""The worker's start, and the ends that it does not choose: bad plans, missing settings, a full disk."""

from pathlib import Path

import pytest

from tests.fakes.test_worker import Yard

pytestmark = pytest.mark.real


def test_a_full_disk_ends_it_with_a_plain_message(tmp_path: Path) -> None:
    """Hazard: a traceback, or a worker that goes on without being able to tell."""
    with Yard(tmp_path) as yard:
        worker = yard.start(shell="ulimit -f 2;")
        _, said = worker.communicate(timeout=20)
        assert worker.returncode == 1
        assert said.startswith("worker t01: ")
        assert "Traceback" not in said


@pytest.mark.parametrize(
    ("task", "env", "says"),
    [
        ({}, {"STOPDRILL_PLAN": ""}, "STOPDRILL_PLAN is not set"),
        ({}, {"STOPDRILL_PLAN": "/nowhere"}, "can't read the plan"),
        ({"files": ["../outside"]}, {}, "not a plain path"),
        ({"misbehaviours": [{"name": "lazy"}]}, {}, "no misbehaviour is called 'lazy'"),
        ({"misbehaviours": [{"name": "slow", "at": 1}]}, {}, "no parameter 'at'"),
    ],
)
def test_what_it_can_not_use_it_names(tmp_path: Path, task: dict[str, object], env: dict[str, str], says: str) -> None:
    """Hazard: a worker that misreads its plan and behaves."""
    with Yard(tmp_path, **task) as yard:
        worker = yard.start(env=env)
        _, said = worker.communicate(timeout=20)
        assert worker.returncode == 2
        assert says in said
        assert "Traceback" not in said
