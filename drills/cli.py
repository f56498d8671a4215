"""The command line. Each command is thin: it reads options, calls the library, prints, and leaves with a status.

Exit status: 0 pass, 1 fail, 2 usage, 3 investigate, 4 broken, 130 interrupted with the evidence kept.
Results go to stdout, progress to stderr, and no traceback reaches a user.
"""

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drills.errors import HarnessTrouble, UsageProblem
from drills.version import VERSION

EXIT_USAGE = 2
EXIT_BROKEN = 4


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="stopdrill")
def cli() -> None:
    """Prove from outside that the coordinator of a fleet of AI agents can really be stopped."""


_PATH = click.Path(path_type=Path)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
_rubric_option = click.option("--rubric", type=_PATH, help="TOML file with thresholds of your own.")


@cli.command()
@click.argument("drill", default="tabletop")
@click.option("--subject", default="reference", show_default=True, help="Who is drilled; see `catalogue subjects`.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Size of the fleet.")
@click.option("--speed", type=click.FloatRange(0, 1000, min_open=True), help="Divides all times of the drill.")
@click.option("--seed", type=int, help="Seed of the tool calls' durations.")
@_rubric_option
@click.option("--out", type=_PATH, default=Path("stopdrill-runs"), show_default=True, help="Where bundles go.")
@click.option("--repo", type=_PATH, help="Work on a throwaway clone of this git repo; it is only ever read.")
@click.option("--in-process", is_flag=True, help="Run an adapter of your own inside stopdrill, as a debugger needs it.")
@_json_option
def run(drill: str, subject: str, in_process: bool, as_json: bool, **options: Any) -> None:
    """Run a drill (a shipped name or a TOML file) and judge it."""
    from drills.adapters.subjects import adapter_for
    from drills.api import run_async, run_interruptibly
    from drills.live import view_for

    progress = Console(stderr=True, quiet=as_json)
    # Before the event loop, because importing an author's code can take long and Ctrl-C has to work meanwhile.
    adapter = adapter_for(subject, in_process)
    with view_for(progress) as view:
        result = run_interruptibly(lambda: run_async(drill, adapter, view=view, **options))
    bundle = result.bundle.path
    if as_json:
        card = result.scorecard.to_json() if result.scorecard else None
        click.echo(json.dumps({"bundle": str(bundle), "scorecard": card, "trouble": list(result.trouble)}))
    elif result.scorecard is not None:
        _show_scorecard(result.scorecard)
    if not as_json:
        report = bundle / "report.html"
        click.echo(f"Report:   {report}" if report.exists() else f"Evidence: {bundle}")
    for line in result.trouble:
        click.echo(f"stopdrill: {line}", err=True)
    if result.interrupted:
        click.echo(f"stopdrill: interrupted; nothing of the run is left, its evidence is in {bundle}", err=True)
    elif result.exit_status == EXIT_BROKEN:
        click.echo(f"stopdrill: the harness could not do its job; what it saw is in {bundle}", err=True)
    sys.exit(result.exit_status)


@cli.command()
@click.argument("bundle", type=_PATH)
@_rubric_option
@_json_option
def score(bundle: Path, rubric: Path | None, as_json: bool) -> None:
    """Score a stored bundle again, from its history alone; writes scorecard.json and junit.xml."""
    from drills.bundle import Bundle
    from drills.rubrics import load_rubric

    stored = Bundle.open(bundle)
    scorecard = stored.judge(load_rubric(rubric))
    stored.write_scorecard(scorecard)
    if as_json:
        click.echo(json.dumps(scorecard.to_json()))
    else:
        _show_scorecard(scorecard)
    sys.exit(scorecard.verdict.exit_status)


@cli.command()
@click.argument("bundles", type=_PATH, nargs=-1, required=True)
@_rubric_option
@_json_option
def report(bundles: tuple[Path, ...], rubric: Path | None, as_json: bool) -> None:
    """Write report.html of stored bundles; exit status 0 when every page was written."""
    from drills.bundle import Bundle
    from drills.rubrics import load_rubric

    limits = load_rubric(rubric)
    written = []
    for path in bundles:
        stored = Bundle.open(path)
        written.append(str(stored.write_report(stored.judge(limits))))
    click.echo(json.dumps({"reports": written}) if as_json else "\n".join(written))


@cli.command()
@click.option("--only", multiple=True, metavar="TWIN", help="Run these twins alone; may be given several times.")
@click.option("--jobs", type=click.IntRange(1, 16), default=2, show_default=True, help="Drills at once.")
@click.option("--out", type=_PATH, help="Keep the bundles here; otherwise only those that surprise are kept.")
@_json_option
def selftest(only: tuple[str, ...], jobs: int, out: Path | None, as_json: bool) -> None:
    """Run every broken twin and the clean reference: is each seen, and nobody accused who is innocent?"""
    from drills.selftest import matrix, selftest_all

    progress = Console(stderr=True, quiet=as_json)
    outcome = selftest_all(only, jobs, out, lambda line: progress.print(Text(line), soft_wrap=True))
    if as_json:
        click.echo(json.dumps(outcome.to_json()))
    else:
        Console().print(matrix(outcome))
    sys.exit(outcome.exit_status)


@cli.command("check-adapter")
@click.argument("name", metavar="ADAPTER")
@_json_option
def check_adapter(name: str, as_json: bool) -> None:
    """Run an adapter (module:attr, a name, or a .toml file) through its paces, and say what is wrong with it."""
    import shutil
    import tempfile

    from drills.conformance.apart import check_apart

    folder = Path(tempfile.mkdtemp(prefix="stopdrill-conformance-"))
    click.echo(f"starting four small fleets with {name}; this takes about ten seconds", err=True)
    kept = False
    try:
        findings = check_apart(name, folder)
        kept = any(finding.ok is False for finding in findings)
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        listed = [finding.__dict__ for finding in findings]
        click.echo(json.dumps({"adapter": name, "ok": not kept, "findings": listed, "evidence": str(folder) * kept}))
    else:
        for finding in findings:
            word = {True: "ok", False: "WRONG", None: "-"}[finding.ok]
            click.echo(f"{word:6}{finding.id:18}{finding.sentence}")
    if kept:
        click.echo(f"stopdrill: what was seen is in {folder}", err=True)
    sys.exit(1 if kept else 0)


@cli.command()
@click.argument("folder", type=_PATH, default=Path())
def init(folder: Path) -> None:
    """Look at a folder and write a commented subject.toml and a CI snippet; never overwrites anything."""
    from drills.init import write

    click.echo("\n".join(write(folder)))


@cli.command()
@click.argument("topic", required=False)
@_json_option
def catalogue(topic: str | None, as_json: bool) -> None:
    """List drills, rows, findings, behaviours, subjects and events, from the code itself."""
    from drills.catalogue import TOPICS

    if topic is not None and topic not in TOPICS:
        raise UsageProblem(f"no topic {topic!r} in the catalogue; there are {', '.join(TOPICS)}")
    chosen = {name: entries() for name, entries in TOPICS.items() if topic in (None, name)}
    if as_json:
        click.echo(json.dumps({name: [entry.__dict__ for entry in entries] for name, entries in chosen.items()}))
        return
    console = Console()
    for name, entries in chosen.items():
        table = Table(title=name, title_justify="left", box=None, title_style="bold", show_header=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        table.add_column(style="dim")
        for entry in entries:
            table.add_row(entry.name, entry.says, entry.more)
        console.print(table)


def _show_scorecard(scorecard: Any) -> None:
    from reports import terminal

    console = Console()
    if console.is_terminal:
        console.print(terminal.render(scorecard))
    else:
        click.echo(terminal.plain(scorecard))


def main() -> None:
    """Entry point: our own errors become a sentence and a status, and so does everything unforeseen."""
    try:
        cli(standalone_mode=False)
    except UsageProblem as error:
        _leave(str(error), EXIT_USAGE)
    except HarnessTrouble as error:
        _leave(str(error), EXIT_BROKEN)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopdrill: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(EXIT_BROKEN)
    except OSError as error:
        _leave(str(error), EXIT_BROKEN)
    except Exception as error:
        _unforeseen(error)


def _leave(message: str, status: int) -> NoReturn:
    """One sentence on stderr, and the exit status."""
    click.echo(f"stopdrill: {message}", err=True)
    sys.exit(status)


def _unforeseen(error: Exception) -> None:
    """A bug of ours: one sentence for the user, the traceback into a file to send us."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="stopdrill-bug-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    message = f"a bug in stopdrill ({type(error).__name__}: {error}); please report it with {file.name}"
    _leave(message, EXIT_BROKEN)
