"""The selftest: run every twin, compare what was found with what is there, name each miss and each accusation.

Each drill runs in a process of its own, a few at a time: they share the machine, but no clock, no loop and no folder.
A twin whose drill was not measurable (the machine was too busy) is run once more by itself before it counts.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from drills import script
from drills.api import run
from drills.bundle import Bundle
from drills.errors import UsageProblem
from drills.twins import Twin, twins
from scoring.rubric import Rubric
from scoring.scorecard import Scorecard
from scoring.verdict import Verdict

UNMEASURED = frozenset({"V3"})
"""Findings that say that the machine, not the subject, was in the way."""


@dataclass(frozen=True)
class Checked:
    """One twin's outcome: ids found, those missed, those that accuse an innocent, and where the bundle is."""

    name: str
    verdict: str
    found: tuple[str, ...]
    missed: tuple[str, ...]
    accused: tuple[str, ...]
    bundle: str
    trouble: tuple[str, ...] = ()
    unmeasured: bool = False

    @property
    def ok(self) -> bool:
        """Nothing missed, nobody accused, and the harness did its job."""
        return not (self.missed or self.accused or self.trouble)


@dataclass(frozen=True)
class Outcome:
    """The whole matrix."""

    checked: tuple[Checked, ...]

    @property
    def exit_status(self) -> int:
        """0 when every twin came out as expected, 1 otherwise."""
        return 0 if self.checked and all(item.ok for item in self.checked) else 1

    def to_json(self) -> dict[str, Any]:
        """`missed` and `accused` as `twin: id`, and each twin's row of the matrix."""
        return {
            "missed": [f"{item.name}: {what}" for item in self.checked for what in item.missed],
            "accused": [f"{item.name}: {what}" for item in self.checked for what in item.accused],
            "trouble": [f"{item.name}: {what}" for item in self.checked for what in item.trouble],
            "twins": len(self.checked),
            "matrix": [item.__dict__ for item in self.checked],
        }


def found_in(scorecard: Scorecard) -> frozenset[str]:
    """Ids of the rows that failed and of all findings."""
    rows = {row.id for row in scorecard.rows if row.verdict is Verdict.FAIL}
    return frozenset(rows | {finding.id for finding in scorecard.findings})


def compare(twin: Twin, scorecard: Scorecard, bundle: str, trouble: tuple[str, ...]) -> Checked:
    """What a twin's scorecard missed, and whom it accused."""
    found = found_in(scorecard)
    accused = found - twin.must - twin.may - UNMEASURED
    unmeasured = bool(found & UNMEASURED - twin.must)
    looked = frozenset(row.id for row in scorecard.rows if row.verdict is Verdict.INVESTIGATE)
    if not (twin.must or unmeasured):
        accused |= looked - twin.look
    missed = (twin.must - found) | (twin.look - looked)
    return Checked(
        twin.name, scorecard.verdict.value, tuple(sorted(found)), tuple(sorted(missed)), tuple(sorted(accused)),
        bundle, trouble, unmeasured,
    )  # fmt: skip


def check_one(name: str, out: str) -> Checked:
    """Run one twin's drill below `out` and compare. Runs in a process of its own."""
    twin = twins()[name]
    drill, _ = script.load(script.find("small"))
    drill = drill.changed({"name": "twin", "title": twin.says or name, **twin.changes}, f"twin {name}")
    result = run(drill, twin.subject, out=Path(out), report=False)
    where = str(result.bundle.path)
    if result.interrupted or result.scorecard is None:
        why = result.trouble or ("interrupted",)
        return Checked(name, "broken", (), (), (), where, tuple(why))
    scorecard = result.scorecard
    if twin.cuts is not None:
        scorecard = _cut(result.bundle, twin.cuts)
    return compare(twin, scorecard, where, (*result.trouble, *scorecard.trouble))


def _cut(bundle: Bundle, source: str) -> Scorecard:
    """Cut a stored file in half, as a crash or a full disk would, and score again."""
    file = bundle.path / "events" / f"{source}.jsonl"
    os.truncate(file, file.stat().st_size // 2)
    return bundle.judge(Rubric())


def selftest_all(only: Sequence[str], jobs: int, out: Path | None, say: Callable[[str], None]) -> Outcome:
    """Run all twins, or those named in `only`, `jobs` at a time. Raises UsageProblem for an unknown name."""
    chosen = list(only) or list(twins())
    if unknown := [name for name in chosen if name not in twins()]:
        raise UsageProblem(f"no twin named {', '.join(unknown)}; there are {', '.join(twins())}")
    folder = out or Path(tempfile.mkdtemp(prefix="stopdrill-selftest-"))
    done = _in_pool(chosen, jobs, folder, say)
    again = [name for name in chosen if done[name].unmeasured and not done[name].ok]
    if again:
        say(f"not measurable beside others, once more alone: {', '.join(again)}")
        done.update(_in_pool(again, 1, folder, say))
    outcome = Outcome(tuple(done[name] for name in chosen))
    if out is None:
        _keep_surprises(outcome, folder, say)
    return outcome


def _in_pool(names: Sequence[str], jobs: int, folder: Path, say: Callable[[str], None]) -> dict[str, Checked]:
    done: dict[str, Checked] = {}
    # Spawned, not forked: a forked child of a process with threads and an event loop behind it is a lottery.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[Checked], str] = {pool.submit(check_one, name, str(folder)): name for name in names}
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                name = waiting.pop(future)
                done[name] = _result(future, name)
                say(f"[{len(done)}/{len(names)}] {_line(done[name])}")
    return done


def _result(future: "Future[Checked]", name: str) -> Checked:
    error = future.exception()
    if error is not None:
        return Checked(name, "broken", (), (), (), "", (f"{type(error).__name__}: {error}",))
    return future.result()


def _line(item: Checked) -> str:
    parts = [f"{item.name}: {'ok' if item.ok else 'SURPRISE'}, found {', '.join(item.found) or 'nothing'}"]
    parts += [f"MISSED {', '.join(item.missed)}"] if item.missed else []
    parts += [f"ACCUSED {', '.join(item.accused)}"] if item.accused else []
    parts += [f"TROUBLE {'; '.join(item.trouble)}"] if item.trouble else []
    return "; ".join(parts)


def _keep_surprises(outcome: Outcome, folder: Path, say: Callable[[str], None]) -> None:
    kept = {item.bundle for item in outcome.checked if not item.ok}
    for entry in folder.iterdir():
        if str(entry) not in kept:
            shutil.rmtree(entry, ignore_errors=True)
    if kept:
        say(f"bundles of the surprises are kept in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


def matrix(outcome: Outcome) -> Table:
    """The matrix for a terminal: expected against found."""
    table = Table(title="selftest: what each twin must show, and what was found", title_justify="left")
    for column in ("twin", "must be found", "found", "missed", "accused"):
        table.add_column(column, overflow="fold")
    known = twins()
    for item in outcome.checked:
        style = "" if item.ok else "bold red"
        cells = (
            item.name, ", ".join(sorted(known[item.name].must)) or "nothing", ", ".join(item.found) or "nothing",
            ", ".join(item.missed) or "–", ", ".join((*item.accused, *item.trouble)) or "–",
        )  # fmt: skip
        table.add_row(*(Text(cell, style=style) for cell in cells))
    missed = sum(len(item.missed) for item in outcome.checked)
    accused = sum(len(item.accused) for item in outcome.checked)
    table.caption = f"{len(outcome.checked)} twins, {missed} missed, {accused} accused"
    return table
