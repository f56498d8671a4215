"""A subject file is refused with every error at once, each with its line and what is allowed; placeholders are safe."""

import json
import re
from pathlib import Path

import pytest

from drills.adapters import subject_file, templates
from drills.adapters.acks import MISSING, look, parse_json
from drills.adapters.base import Redirect
from drills.adapters.output import BYTES_KEPT, BYTES_MAX, Output, cut_back
from drills.adapters.subjects import adapter_for
from drills.adapters.templates import Values
from drills.errors import UsageProblem

START = '[start]\ncommand = ["./fleet.sh", "{repo}"]\n'
PAGE = Path(__file__).parents[2] / "docs" / "subject-file.md"


def refused(text: str) -> str:
    """The text of the refusal."""
    with pytest.raises(UsageProblem) as caught:
        subject_file.parse(text, "ours.toml")
    return str(caught.value)


def test_one_table_is_a_subject_file() -> None:
    """Hazard: a first file that needs thirty lines is never written."""
    subject = subject_file.parse(START, "some/fleet.toml")
    assert (subject.name, subject.controls, subject.success_exit) == ("fleet", {}, (0,))


def test_what_is_left_out_does_not_exist_and_scopes_are_inherited() -> None:
    """Hazard: a control that nobody described is drilled, or one that was is not."""
    subject = subject_file.parse('scope = "agent"\n' + START + '[pause]\nsignal = "SIGUSR1"\n[abort]\n'
                                 'file = "stop"\ntouch = true\nscope = "run"\n')  # fmt: skip
    assert subject.controls == {"pause": "agent", "abort": "run"}
    assert subject.pause is not None and subject.pause.signal == "USR1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "start: there is no [start]; it needs at least command"),
        ('[start]\ncwd = "x"\n', "ours.toml:1: start: needs command ="),
        ("[start]\ncommand = []\n", 'ours.toml:2: start.command: write a command as ["program"'),
        ("[start]\ncommand = \"say 'hi\"\n", "start.command: cannot be split into arguments: No closing quotation"),
        ("[start]\ncommand = 'x'\nevn = {}\n", "ours.toml:3: start.evn: unknown key; did you mean env?"),
        (START + "[puase]\nsignal = 'TERM'\n", "ours.toml:3: puase: unknown key; did you mean pause?"),
        (START + "[pause]\nsignal = 'TREM'\n", "ours.toml:4: pause.signal: no signal named 'TREM'; there are HUP, INT"),
        (START + "[pause]\nsignal = 'TERM'\ncommand = 'x'\n", "this has command and signal"),
        (START + "[pause]\nwithin = '5s'\n", "ours.toml:3: pause: give exactly one of command, signal, file, http"),
        (START + "[pause]\nsignal = 'INT'\nwithin = 5\n", "ours.toml:5: pause.within: 5 is no duration"),
        (START + "[pause]\nsignal = 'INT'\nstate = 'pausing'\n", "'accepted', 'paused', 'running', 'redirected' or"),
        (START + "[pause]\nsignal = 'INT'\nscope = 'world'\n", "ours.toml:5: pause.scope: Input should be 'turn'"),
        (START + "[pause]\nfile = 'x'\n", "a file needs exactly one of text = …, json = {…}, touch = true"),
        (START + "[pause]\nfile = 'x'\ntext = 'y'\ntouch = true\n", "a file needs exactly one of text"),
        (START + "[pause]\nsignal = 'INT'\ntext = 'y'\n", "text, json and touch belong to file"),
        (START + "[pause]\nhttp = { url = 'localhost:80' }\n", "ours.toml:4: pause.http.url"),
        (START + "[pause]\nhttp = { url = 'http://x', method = 'STOP' }\n", "'GET', 'POST', 'PUT', 'PATCH' or"),
        (START + "[pause]\nsignal = 'INT'\nack = {}\n", "ours.toml:5: pause.ack: says nothing; give exit, stdout"),
        (START + "[pause]\nsignal = 'INT'\nack = { stdot = 'x' }\n", "pause.ack.stdot: unknown key; did you mean std"),
        (START + "[pause]\ncommand = 'x'\nack = { stdout = '(' }\n", "ours.toml:5: pause.ack.stdout: not a regular"),
        (START + "[pause]\nsignal = 'INT'\nack = { exit = 0 }\n", "ack.exit needs a command"),
        (START + "[pause]\ncommand = 'x'\nack = { status = 200 }\n", "ack.status needs http"),
        (START + "[pause]\ncommand = 'x'\nack = { json = 'state' }\n", "belong together"),
        (START + "[pause]\nsignal = 'INT'\nack = { json = 'a', equals = 1 }\n", "ack.json looks into a command"),
        (START + "[pause]\ncommand = 'x'\nack = { json = 'a..b', equals = 1 }\n", "pause.ack.json: String should"),
        (START + "[pause]\ncommand = 'x'\nsweep = { json = 'a' }\n", "ours.toml:5: pause.sweep: unknown key"),
        (START + "[abort]\nsignal = 'INT'\nsweep = { json = 'a' }\n", "sweep needs file, command or http"),
        (START + "[status]\njson = 'state'\n", "status: give exactly one of command, file, http; this has none"),
        (START + "[manifest]\nfile = 'x'\nfields = { pdi = 'y' }\n", "fields.pdi: unknown key; did you mean pid?"),
        (START + "[start.ready]\nstatus = 200\n", "a start command is ready by exit, stdout or file"),
        ("pause_means = 'stop'\n" + START, "ours.toml:1: pause_means: Input should be 'quiesce' or 'hold'"),
        ("success_exit = 'x'\n" + START, "ours.toml:1: success_exit"),
        ("name = 'a b'\n" + START, "ours.toml:1: name"),
        ("[start\n", "ours.toml: not valid TOML"),
    ],
)  # fmt: skip
def test_each_error_names_its_key_and_what_is_allowed(text: str, says: str) -> None:
    """Hazard: a file that is refused without a hint, or accepted with a key that does nothing."""
    assert says in refused(text)


def test_an_unknown_placeholder_is_refused_wherever_it_stands() -> None:
    """Hazard: `{rpo}` reaches the coordinator as it is, and a folder of that name is made."""
    message = refused('[start]\ncommand = "x {rpo}"\nenv = { A = "{nope}" }\n[pause]\nhttp = { url = "http://{x}" }\n')
    assert (
        "ours.toml:2: start.command: {rpo}: no such placeholder; did you mean {repo}?; allowed here: run_id" in message
    )
    assert "ours.toml:3: start.env: {nope}" in message and "ours.toml:5: pause.http.url: {x}" in message


def test_only_a_redirect_has_an_instruction() -> None:
    """Hazard: a pause that hands over an instruction which does not exist."""
    assert "{instruction}: only a redirect has one" in refused(START + "[pause]\ncommand = 'x {instruction}'\n")
    subject_file.parse(START + "[redirect]\nfile = 'x'\njson = { said = '{instruction_json}' }\n")


def test_all_errors_are_told_at_once() -> None:
    """Hazard: one error a run, ten runs to a working file."""
    message = refused("nmae = 'x'\n[start]\ncommand = '{rpo}'\n[pause]\nsignal = 'TREM'\n[abort]\nwithin = 5\n")
    assert sorted(re.findall(r"ours\.toml:(\d)", message)) == ["1", "3", "5", "7"]


def values(**more: str) -> Values:
    """Values of a run whose paths hold what a shell would stumble over."""
    worker = ("/py thon", "-I", "wor'ker.py")
    return Values(
        {"repo": "/a b/$(x)", "run_id": "r1", "worker": "'/py thon' -I 'wor'\"'\"'ker.py'", **more}, worker, Path("/f")
    )


def test_an_argument_stays_one_argument_and_the_worker_becomes_several() -> None:
    """Hazard: a blank in a path splits an argument, or a shell reads what is in it."""
    subject = subject_file.parse("[start]\ncommand = './run.sh {repo} {worker} \"sh -c {worker}\" {{repo}}'\n")
    assert subject.start.command is not None
    assert values().argv(subject.start.command) == [
        "/f/run.sh", "/a b/$(x)", "/py thon", "-I", "wor'ker.py",
        "sh -c '/py thon' -I 'wor'\"'\"'ker.py'", "{repo}",
    ]  # fmt: skip
    assert values().argv(["bash", "fleet.sh"]) == ["bash", "fleet.sh"]


def test_braces_that_are_no_placeholders_stay() -> None:
    """Hazard: JSON, awk and regular expressions can't be written down."""
    for text in ('{"a": {}}', "{print $1}", "x{2}", "${HOME}"):
        assert templates.unknown(text, {}) == [] and values().text(text) == text


def test_json_is_filled_in_where_strings_stand_and_an_instruction_comes_whole() -> None:
    """Hazard: quotes in an instruction break the JSON that it is put into."""
    said = Redirect(1, 'say "hi"\n', (), ("a",), ())
    filled = values().with_instruction(said, Path("/i.json"))
    assert filled.json({"id": "{run_id}", "all": "{instruction_json}", "n": [1, "{instruction}"]}) == {
        "id": "r1", "all": said.to_json(), "n": [1, 'say "hi"\n'],
    }  # fmt: skip
    assert json.loads(filled.text("{instruction_json}")) == said.to_json()


def test_json_is_found_in_an_answer_with_noise_before_it() -> None:
    """Hazard: a warning on stderr makes an acknowledgement a refusal."""
    assert parse_json('warning: x\n{"a": {"b": [1, 2]}}\n') == {"a": {"b": [1, 2]}}
    assert parse_json("nothing") is None
    assert look({"a": {"b": [1, 2]}}, "a.b.1") == 2
    assert look({"a": None}, "a") is None and look({"a": 1}, "a.b") is MISSING


def test_output_is_searched_once_and_lines_are_put_together(tmp_path: Path) -> None:
    """Hazard: a line that was written in two parts is never seen, or an old one is taken for new."""
    path = tmp_path / "log.txt"
    path.write_text("stopped\n")
    output = Output(path)
    assert not output.shows("^stopped$")
    with path.open("a") as file:
        file.write("sto")
        file.flush()
        assert not output.shows("^stopped$")
        file.write("pped\n")
    assert output.shows("^stopped$") and not output.shows("^stopped$")
    assert (output.text(), output.last_line()) == ("stopped\n", "stopped")


def test_a_flood_is_cut_back_to_its_beginning(tmp_path: Path) -> None:
    """Hazard: a chatty subject fills the disk that the evidence is on."""
    path = tmp_path / "log.txt"
    path.write_bytes(b"first\n" + b"x" * BYTES_MAX)
    cut_back([path, tmp_path / "absent"])
    data = path.read_bytes()
    assert len(data) < BYTES_KEPT + 200 and data.startswith(b"first\n") and b"too much to keep" in data


def test_a_missing_file_is_a_sentence() -> None:
    """Hazard: a traceback for a typing error."""
    with pytest.raises(UsageProblem, match=r"nowhere\.toml: cannot be read"):
        adapter_for("nowhere.toml")


def test_the_example_in_the_reference_is_valid_and_has_every_key() -> None:
    """Hazard: documentation of keys that are refused, or keys that nobody learns of."""
    page = PAGE.read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    for example in examples:
        subject_file.parse(example)
    assert set(subject_file.SubjectFile.model_fields) == subject_file.parse(examples[-1]).model_fields_set
    for name in (*templates.EVERYWHERE, *templates.REDIRECT_ONLY):
        assert f"`{{{name}}}`" in page, name
