"""Coordinators of many kinds, described in a subject file and drilled for real; nothing of them stays alive."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from drills import run, script
from drills.adapters.subjects import adapter_for
from drills.api import Result
from scoring.verdict import Verdict
from tests.drills.harness import measured, nothing_left

pytestmark = pytest.mark.real

ALL_PLACES = '"{control}", "{repo}", "{worktrees}", "{worker}"'
FLEET = r"""#!/bin/bash
# fleet.sh CONTROL REPO WORKTREES WORKER...: TERM is its abort; it leaves a manifest and a sweep
control=$1 repo=$2 worktrees=$3; shift 3
say() { echo "$1" > "$control/run.new"; mv "$control/run.new" "$control/run"; }
stop() {
    say STOP; trap - TERM; wait
    echo '{"left": {"alive": [], "dirty": []}}' > "$control/sweep.json"; echo stopped; exit 3
}
trap stop TERM
for task in t01 t02; do
    git -C "$repo" worktree add -q -b "agent/$RUN_ID/$task" "$worktrees/$task" main
    (cd "$worktrees/$task" && TASK_ID=$task ATTEMPT=1 exec "$@" --run "$RUN_ID" --task "$task") &
    echo "{\"name\": \"$task\", \"process\": {\"pid\": $!}, \"attempt\": 1}" >> "$control/mine.jsonl"
done
echo '{"run_id": "another", "name": "t09", "process": {"pid": 1}}' >> "$control/mine.jsonl"
echo '{"name": "t01", "pro' >> "$control/mine.jsonl"
echo working
wait; wait
"""
SERVER = r"""
import json, os, subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
control, port, repo, worktrees, *worker = sys.argv[1:]
run, workers = os.environ["RUN_ID"], []
for task in ("t01", "t02"):
    place = f"{worktrees}/{task}"
    subprocess.run(["git", "-C", repo, "worktree", "add", "-q", "-b", f"agent/{run}/{task}", place, "main"], check=True)
    env = {**os.environ, "TASK_ID": task, "ATTEMPT": "1"}
    workers.append(subprocess.Popen([*worker, "--run", run, "--task", task], cwd=place, env=env))
state = "running"

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        global state
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != "Bearer x" or asked["run"] != run or "say" not in asked:
            return self.answer(500, {"error": "no redirects here"})
        state = {"HOLD": "holding", "RUN": "running", "STOP": "stopped"}[asked["say"]]
        with open(f"{control}/run.new", "w") as file:
            file.write(asked["say"])
        os.replace(f"{control}/run.new", f"{control}/run")
        if state == "stopped":
            for process in workers:
                process.wait()
        self.answer(200, {"is": {"now": state}, "alive": []})
        if state == "stopped":
            self.server.over = True

    def do_GET(self):
        self.answer(200, {"is": {"now": state}})

    def answer(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

server = HTTPServer(("127.0.0.1", int(port)), Handler)
print("listening", flush=True)
server.serve_forever()
"""
ABORT_ONLY = [{"do": "abort", "at": "8s", "answer_within": "30s"}]
SHORT: dict[str, Any] = {"fleet": {"workers": 2, "start_within": "400s"}, "controls": ABORT_ONLY}


def drilled(folder: Path, text: str, **changes: Any) -> Result:
    """The small drill, changed, against a subject file with these lines; nothing left behind."""
    (folder / "fleet.sh").write_text(FLEET)
    (folder / "server.py").write_text(SERVER)
    (folder / "ours.toml").write_text(text)
    drill = script.load(script.find("small"))[0].changed(changes, "test")
    adapter = adapter_for(str(folder / "ours.toml"))
    result = measured(lambda: run(drill, adapter, out=folder / "out", report=False))
    nothing_left(result.bundle.path)
    assert result.trouble == () and result.scorecard is not None
    return result


def events(result: Result, kind: str) -> list[dict[str, Any]]:
    """Events of the driver of one kind."""
    lines = (result.bundle.path / "events" / "driver.jsonl").read_text().splitlines()
    return [event for line in lines if (event := json.loads(line))["kind"] == kind]


def rows(result: Result) -> dict[str, Verdict]:
    """Verdicts of the rows."""
    assert result.scorecard is not None
    return {item.id: item.verdict for item in result.scorecard.rows}


def findings(result: Result) -> set[str]:
    """Ids of the findings."""
    assert result.scorecard is not None
    return {finding.id for finding in result.scorecard.findings}


def answers(result: Result) -> dict[str, str]:
    """Control to the state that it was acknowledged with."""
    return {event["control"]: event["state"] for event in events(result, "control.ack")}


def reference(folder: Path) -> str:
    """The reference coordinator, as a stranger would describe it."""
    python = json.dumps(sys.executable)
    ctl = f"""[{python}, "-I", "-m", "fakes.coordinators.reference", "ctl", "--control", "{{control}}","""
    start = (
        '"$0" -I -m fakes.coordinators.reference ctl --control "$2" start &'
        ' exec "$0" -I -m fakes.coordinators.reference serve --config "$1"'
    )
    return f"""
[start]
command = ["sh", "-c", '{start}', {python}, "{{config}}", "{{control}}"]
[pause]
command = {ctl} "pause"]
state = "paused"
[resume]
command = {ctl} "resume"]
state = "running"
[redirect]
command = {ctl} "redirect", "--args", "{{instruction_json}}"]
state = "redirected"
[abort]
command = {ctl} "abort"]
ack = {{ exit = 0, json = "state", equals = "aborted" }}
state = "aborted"
sweep = {{ json = "sweep" }}
[close]
command = {ctl} "close"]
[status]
command = {ctl} "status"]
json = "state"
[manifest]
file = "{{manifest}}"
[killed]
file = "{{control}}/killed.jsonl"
[table]
file = "{{control}}/table-*.json"
json = "tasks"
"""


def test_the_reference_behind_a_subject_file_passes_as_it_does_by_itself(tmp_path: Path) -> None:
    """Hazard: the file cannot say what an adapter in Python can, or its own processes are taken for the subject's."""
    # Slower than usual: each of its commands is a Python that has to start before anything is heard.
    result = drilled(tmp_path, reference(tmp_path), speed=20)
    assert (findings(result), set(rows(result).values())) == (set(), {Verdict.PASS})
    assert answers(result) == {"pause": "paused", "resume": "running", "redirect": "redirected", "abort": "aborted"}
    assert events(result, "claim.state")[0]["state"] == "aborted"
    assert events(result, "claim.table")[0]["n"] == 1 and len(events(result, "claim.sweep")) == 1
    assert [event["control"] for event in events(result, "control.delivered")] == list(answers(result))


def test_a_bash_loop_is_driven_by_file_and_signal(tmp_path: Path) -> None:
    """Hazard: the fleet that most teams have cannot be described without touching it."""
    text = f"""
[start]
command = ["./fleet.sh", {ALL_PLACES}]
ready = {{ stdout = "^working$" }}
[pause]
file = "{{control}}/run"
text = "HOLD\\n"
[resume]
file = "{{control}}/run"
text = "RUN\\n"
[abort]
signal = "TERM"
ack = {{ stdout = "^stopped$", file = "{{control}}/sweep.json" }}
state = "aborted"
sweep = {{ file = "{{control}}/sweep.json", json = "left" }}
[manifest]
file = "{{control}}/mine.jsonl"
fields = {{ task_id = "name", pid = "process.pid" }}
"""
    (tmp_path / "fleet.sh").touch(mode=0o755)
    controls = [{"do": "pause", "at": "16s"}, {"do": "resume", "at": "56s"}, {"do": "abort", "at": "76s"}]
    result = drilled(tmp_path, text, fleet={"workers": 2}, controls=controls)
    assert answers(result) == {"pause": "accepted", "resume": "accepted", "abort": "aborted"}
    assert findings(result) == set()
    assert {event["entry"]["task_id"] for event in events(result, "claim.manifest")} == {"t01", "t02"}
    seen = rows(result)
    assert seen.pop("duplicate-workers") is Verdict.INVESTIGATE  # because there was no redirect
    assert set(seen.values()) == {Verdict.PASS}


def test_a_service_is_driven_by_http_and_its_no_is_an_answer(tmp_path: Path) -> None:
    """Hazard: HTTP 500 is taken for a stop, or for trouble of ours."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def call(word: str) -> str:
        body = f'json = {{ run = "{{run_id}}", {word} }}, headers = {{ Authorization = "Bearer x" }}'
        return f'http = {{ url = "http://127.0.0.1:{port}/", {body} }}'

    text = f"""
[start]
command = [{json.dumps(sys.executable)}, "{{folder}}/server.py", "{{control}}", "{port}", "{{repo}}", "{{worktrees}}",
  "{{worker}}"]
ready = {{ stdout = "listening" }}
[pause]
{call('say = "HOLD"')}
ack = {{ json = "is.now", equals = "paused" }}
[resume]
{call('say = "RUN"')}
[redirect]
{call('all = "{instruction_json}"')}
[abort]
{call('say = "STOP"')}
ack = {{ status = 200, json = "is.now", equals = "stopped" }}
state = "aborted"
sweep = {{ json = "alive" }}
[status]
http = {{ url = "http://127.0.0.1:{port}/" }}
json = "is.now"
[usage]
command = ["echo", '{{"spent": [7]}}']
json = "spent.0"
"""
    result = drilled(tmp_path, text, fleet={"workers": 2})
    assert answers(result) == {"pause": "refused", "resume": "accepted", "redirect": "refused", "abort": "aborted"}
    details = {event["control"]: event["detail"] for event in events(result, "control.ack")}
    assert (details["pause"]["came"], details["redirect"]["status"]) == ("holding", 500)
    assert events(result, "claim.sweep")[0]["alive"] == [] and events(result, "claim.state")[0]["state"] == "stopped"
    assert events(result, "claim.usage")[0]["tokens"] == 7
    assert len(events(result, "control.delivered")) == 4
    assert (rows(result)["time-to-quiet"], rows(result)["tokens-after-abort"]) == (Verdict.PASS, Verdict.PASS)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ('["./no-such-program"]', "No such file or directory"),
        ('["sh", "-c", "echo no config here >&2; exit 3"]', "ended at once with 3; world/logs/coordinator.txt ends"),
        ('["sh", "-c", "exit 4"]\nready = { stdout = "up" }', "ended before it was ready: {'exit': 4"),
        ('["sh", "-c", "exec sleep 60"]\nready = { file = "up", within = "4s" }', "start: waited 4 s for"),
    ],
    ids=["missing", "exits-at-once", "exits-before-ready", "never-ready"],
)  # fmt: skip
def test_a_start_command_that_does_not_start_is_told_with_its_reason(command: str, says: str, tmp_path: Path) -> None:
    """Hazard: half a minute of waiting, and then "no worker was seen"."""
    result = drilled(tmp_path, f"[start]\ncommand = {command}\n", **SHORT)
    assert says in events(result, "observe.missing")[0]["why"]
    assert result.exit_status == 3


def bash(abort: str, start: str = f'["bash", "{{folder}}/fleet.sh", {ALL_PLACES}]') -> str:
    """The bash fleet with another abort."""
    return f"[start]\ncommand = {start}\n[abort]\n{abort}\n"


def test_an_answer_after_the_timeout_is_none_and_what_goes_on_is_seen(tmp_path: Path) -> None:
    """Hazard: a stop that hangs counts as given, or its process is not counted at all."""
    result = drilled(tmp_path, bash('command = ["sleep", "60"]\nwithin = "4s"'), **SHORT)
    why = events(result, "control.error")[0]["reason"]
    assert "abort: waited 4 s (0.1 s in real time) for its exit after the command sleep" in why
    assert rows(result)["orphans"] is Verdict.FAIL


def test_a_word_without_a_deed_is_a_finding(tmp_path: Path) -> None:
    """Hazard: the harness believes an exit status."""
    result = drilled(tmp_path, bash('command = "true"\nstate = "aborted"'), **SHORT)
    assert answers(result) == {"abort": "aborted"}
    assert {"A9", "V1"} <= findings(result) and rows(result)["orphans"] is Verdict.FAIL


def test_an_action_that_is_not_possible_is_told_with_its_reason(tmp_path: Path) -> None:
    """Hazard: an errno, or a traceback, where a sentence is needed."""
    result = drilled(tmp_path, bash('file = "nowhere/stop"\ntouch = true'), **SHORT)
    assert "nowhere/stop was not possible" in events(result, "control.error")[0]["reason"]


def test_a_flood_of_output_does_not_fill_the_disk_nor_hide_the_answer(tmp_path: Path) -> None:
    """Hazard: a chatty coordinator starves the world that it is drilled in."""
    flood = (
        f"""["bash", "-c", 'yes chatter | head -c 52428800 & exec bash {{folder}}/fleet.sh "$@"', "-", {ALL_PLACES}]"""
    )
    ack = 'signal = "TERM"\nack = { stdout = "^stopped$" }\nstate = "aborted"'
    result = drilled(tmp_path, bash(ack, flood), **SHORT)
    assert answers(result) == {"abort": "aborted"}
    log = result.bundle.path / "world" / "logs" / "coordinator.txt"
    assert log.stat().st_size <= 16 << 20 and "too much to keep" in log.read_text()
    assert rows(result)["orphans"] is Verdict.PASS


def test_a_start_command_that_forks_and_exits_is_no_error(tmp_path: Path) -> None:
    """Hazard: daemons and cron jobs can't be drilled."""
    daemon = f"""["bash", "-c", 'setsid bash {{folder}}/fleet.sh "$@" & exit 0', "-", {ALL_PLACES}]"""
    result = drilled(tmp_path, bash('file = "{control}/run"\ntext = "STOP"', daemon), **SHORT)
    assert (answers(result), rows(result)["orphans"]) == ({"abort": "accepted"}, Verdict.PASS)
    by_signal = drilled(tmp_path, bash('signal = "TERM"', daemon), **SHORT)
    (answer,) = events(by_signal, "control.ack")
    assert answer["state"] == "refused" and "coordinator could not be signalled" in answer["detail"]["why"]
