"""The run's git origin: a bare repository that logs every attempted ref update and keeps main closed.

Runs in the driver's process, not in the subject's tree. Three hooks: `pre-receive` logs the attempt and
refuses what isn't an agent's or a pull request's branch or an `abandoned/` tag; `post-receive` logs what was
accepted; `reference-transaction` logs a write to main that came past both, by someone who reached into the
repository itself. Not seen: a ref file written without git. The refs recorded by the driver show that.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from fakes import origin_hook

MAIN = "refs/heads/main"
OPEN = ("refs/heads/agent/", "refs/heads/pr/", "refs/tags/abandoned/")
GIT_S_MAX = 600.0

# A shell guard, because git calls this hook three times for each transaction and Python takes 15 ms to start.
_TRANSACTION = """#!/bin/sh
[ "$1" = committed ] || exit 0
while read -r old new ref; do
    if [ "$ref" = {main} ]; then
        printf '%s %s %s\\n' "$old" "$new" "$ref" | {hook} reference-transaction {config}
    fi
done
exit 0
"""


class RepoError(ValueError):
    """A repository can't be used. The message names its path and what to do."""


def git(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, text: str = "") -> bytes:
    """Output of a git command that obeys no one's configuration or hooks but the repository's own in `cwd`.

    `text` goes to its standard input. Raises RepoError with git's own words when it fails.
    """
    result = subprocess.run(
        ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsmonitor=false", *arguments],
        cwd=cwd,
        env={**_environment(), **(env or {})},
        input=text.encode("utf-8", "surrogateescape"),
        capture_output=True,
        timeout=GIT_S_MAX,
        check=False,
    )
    if result.returncode:
        said = result.stderr.decode("utf-8", "replace").strip()
        raise RepoError(f"git {arguments[0]} failed in {cwd}: {said}")
    return result.stdout


def _environment() -> dict[str, str]:
    """The least that git needs. No GIT_* variable of the caller, who may be a git hook himself."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
    }


def copy_head(path: Path, source: Path) -> str:
    """Make the bare repository `path` with one branch, main, at the HEAD of `source`; returns its commit.

    By the transport, over file://, so that no object is shared with the source: neither a hard link nor an
    alternate. Of the source only git-upload-pack is started, which runs none of its hooks and writes nothing.
    Raises RepoError when there is nothing to fetch.
    """
    path.mkdir(parents=True)
    git("init", "-q", "--bare", "--template=", "-b", "main", ".", cwd=path)
    url = "file://" + quote(str(source.resolve()))
    with tempfile.TemporaryDirectory() as folder:
        # The user named this path himself, so that it may be read whoever owns it, as in a CI container.
        config = Path(folder, "gitconfig")
        config.write_text("[safe]\n\tdirectory = *\n", encoding="ascii")
        arguments = ("fetch", "-q", "--no-tags", "--update-shallow", url, f"+HEAD:{MAIN}")
        git("-c", "core.hooksPath=/dev/null", *arguments, cwd=path, env={"GIT_CONFIG_GLOBAL": str(config)})
    return git("rev-parse", MAIN, cwd=path).decode().strip()


def create_origin(path: Path, source: Path, *, events: Path) -> str:
    """Make the run's origin at `path` from the HEAD of `source`, install the hooks; returns main's commit.

    `events` is the bundle's folder of event files. After this, main is closed: whatever the harness wants on
    it has to be in `source`.
    """
    commit = copy_head(path, source)
    install_hooks(path, events=events)
    return commit


def install_hooks(path: Path, *, events: Path) -> None:
    """Install the three hooks in the bare repository `path`. Every ref update is logged from here on."""
    path = path.resolve()
    config = path / "stopdrill.json"
    config.write_text(json.dumps({"events": str(events.resolve()), "open": OPEN}), encoding="utf-8")
    program = shlex.join([sys.executable, "-I", "-S", "-E", str(Path(origin_hook.__file__).resolve())])
    hooks = path / "hooks"
    hooks.mkdir(exist_ok=True)
    quoted = shlex.quote(str(config))
    scripts = {name: f"#!/bin/sh\nexec {program} {name} {quoted}\n" for name in ("pre-receive", "post-receive")}
    scripts["reference-transaction"] = _TRANSACTION.format(main=MAIN, hook=program, config=quoted)
    for name, script in scripts.items():
        (hooks / name).write_text(script, encoding="utf-8")
        (hooks / name).chmod(0o755)
    # Set here, because otherwise a pusher's global core.hooksPath would decide which hooks run.
    for key, value in (("core.hooksPath", str(hooks)), ("receive.autogc", "false"), ("gc.auto", "0")):
        git("config", key, value, cwd=path)
