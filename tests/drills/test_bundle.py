"""A stored run can be judged again: same bytes, other thresholds, damage named, nothing changed by reading."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from drills import Bundle, UsageProblem, run
from scoring.rubric import Rubric
from scoring.verdict import Verdict
from tests.drills.harness import measured, nothing_left, score

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One clean small run, with its report."""
    out = tmp_path_factory.mktemp("runs")
    result = measured(lambda: run("small", out=out))
    nothing_left(result.bundle.path)
    assert (result.exit_status, result.trouble) == (0, ())
    yield result.bundle.path


def copy(bundle: Path, where: Path) -> Path:
    """The bundle's evidence without its world."""
    for file in [*bundle.glob("*.*"), *bundle.glob("events/*"), *bundle.glob("git/*")]:
        target = where / file.relative_to(bundle)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    return where


def test_a_bundle_holds_what_it_promises(bundle: Path) -> None:
    """Hazard: a report that cannot be checked because its evidence was not kept."""
    names = {path.name for path in bundle.iterdir()}
    assert {
        "drill.toml", "subject.json", "environment.json", "manifest.jsonl", "events", "git",
        "scorecard.json", "report.html", "junit.xml",
    } <= names  # fmt: skip
    card = json.loads((bundle / "scorecard.json").read_text())
    assert card["schema"] == 1 and card["verdict"] == "pass" and card["complete"] is True
    assert [row["id"] for row in card["rows"]] == [
        "time-to-quiet", "dirty-worktrees", "duplicate-workers", "direct-pushes", "orphans", "tokens-after-abort",
    ]  # fmt: skip
    for row in card["rows"]:
        assert row.keys() == {"id", "verdict", "value", "unit", "limits", "why", "evidence"}
        for identity in row["evidence"]:
            source, line = identity.rsplit(":", 1)
            assert (bundle / "events" / f"{source}.jsonl").read_bytes().split(b"\n")[int(line) - 1]
    assert set(card["work_lost_s"]["abort@4"]) >= {"t01", "t03", "t04"}


def test_scoring_again_gives_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    """Hazard: a verdict that depends on when and where it is computed."""
    stored = copy(bundle, tmp_path / "elsewhere")
    before = {name: (stored / name).read_bytes() for name in ("scorecard.json", "junit.xml")}
    assert score(stored)[0] == 0
    assert {name: (stored / name).read_bytes() for name in before} == before


def test_other_thresholds_give_another_verdict(bundle: Path, tmp_path: Path) -> None:
    """Hazard: a rubric that is read and not used; one that takes a row out."""
    stored = copy(bundle, tmp_path / "elsewhere")
    strict = tmp_path / "strict.toml"
    strict.write_text("[rows.time-to-quiet]\npass_longest_calls = 0.001\ninvestigate_longest_calls = 0.002\n")
    status, said = score(stored, "--rubric", str(strict))
    assert status in (0, 1, 3) and "pass ≤ 0.01" in said
    strict.write_text("[rows.orphans]\nenabled = false\n")
    status, said = score(stored, "--rubric", str(strict))
    assert status == 2 and str(strict) in said and "rows can't be removed" in said


def test_reading_changes_nothing_but_what_is_derived(bundle: Path) -> None:
    """Hazard: looking at evidence changes it."""

    def evidence() -> dict[str, str]:
        files = [path for path in sorted(bundle.rglob("*")) if path.is_file() and path.parent != bundle]
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    before = evidence()
    stored = Bundle.open(bundle)
    stored.write_report(stored.judge(Rubric()))
    assert evidence() == before


@pytest.mark.parametrize("source", ["driver", "keeper", "provider", "canary"])
def test_a_cut_or_missing_source_never_passes(bundle: Path, tmp_path: Path, source: str) -> None:
    """Hazard: a full disk or a lost file turns into a clean verdict."""
    stored = Bundle.open(copy(bundle, tmp_path / "cut"))
    file = stored.path / "events" / f"{source}.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    assert stored.judge(Rubric()).verdict is Verdict.INVESTIGATE
    file.unlink()
    card = stored.judge(Rubric())
    assert (card.verdict, card.complete) == (Verdict.INVESTIGATE, False)


def test_what_is_no_bundle_is_said(tmp_path: Path, bundle: Path) -> None:
    """Hazard: a traceback for a wrong folder."""
    with pytest.raises(UsageProblem, match="no such directory"):
        Bundle.open(tmp_path / "nowhere")
    with pytest.raises(UsageProblem, match=f"Bundles in it: .*{bundle.name}"):
        Bundle.open(bundle.parent)
    (tmp_path / "events").mkdir()
    with pytest.raises(UsageProblem, match="nothing to score"):
        Bundle.open(tmp_path).judge(Rubric())


def test_the_worktrees_are_still_there_with_their_checkpoints(bundle: Path) -> None:
    """Hazard: clean-up that deletes the evidence."""
    for task in ("t01", "t02", "t03", "t04"):
        assert (bundle / "world" / "worktrees" / task / ".git").exists()
        assert "wip: " + task in (bundle / "git" / f"{task}.txt").read_text()
