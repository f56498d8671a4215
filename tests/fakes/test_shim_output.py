"""What shims print is read as what the CLI prints, and holds the true figures."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.shim_yard import ShimYard

pytestmark = pytest.mark.real


def lines_of(text: str) -> list[dict[str, Any]]:
    """One object a line."""
    return [json.loads(line) for line in text.splitlines()]


def test_every_format_is_what_its_readers_expect(tmp_path: Path) -> None:
    """Hazard: a script that reads `.result` or `.usage` with jq gets null."""
    with ShimYard(tmp_path, steps=2, calls={"distribution": "fixed", "value_s": 0.0}) as yard:
        yard.start_provider()

        def said(task: str, *words: str) -> str:
            return yard.done(*words, TASK_ID=task)

        one = json.loads(said("t01", "claude", "-p", "x", "--output-format", "json", "--session-id", "5f-1"))
        assert (one["type"], one["subtype"], one["is_error"], one["num_turns"]) == ("result", "success", False, 2)
        assert (one["session_id"], one["result"]) == ("5f-1", "t01: step 2 of 2 is done, all steps are done.")
        assert one["usage"] == {"input_tokens": 800, "output_tokens": 24}

        many = lines_of(said("t02", "claude", "-p", "x", "--output-format", "stream-json", "--verbose"))
        assert [line["type"] for line in many] == ["system", "assistant", "assistant", "result"]
        assert many[0]["subtype"] == "init"
        assert len({line["session_id"] for line in many}) == 1

        many = lines_of(said("t03", "codex", "exec", "--json", "-o", "last.txt", "x"))
        kinds = [line["type"] for line in many]
        items = ["item.completed"] * 3
        assert kinds == ["thread.started", "turn.started", *items, "turn.completed"]
        assert many[-1]["usage"]["output_tokens"] == 24
        assert many[-2]["item"]["text"] == "t03: step 2 of 2 is done, all steps are done."
        assert (yard.worktrees / "t02/last.txt").read_text() == "t03: step 2 of 2 is done, all steps are done.\n"

        one = json.loads(said("t01", "gemini", "-p", "x", "-o", "json"))
        assert one["response"] == "t01: step 2 of 2 is done, all steps are done."
        many = lines_of(said("n01", "gemini", "-p", "x", "-o", "stream-json"))
        assert [line["type"] for line in many] == ["init", "message", "message", "result"]
        many = lines_of(said("t01", "opencode", "run", "x", "--format", "json"))
        assert [line["type"] for line in many] == ["step_start", "text", "step_finish"]
        one = json.loads(said("t01", "cursor-agent", "-p", "x", "--output-format", "json"))
        assert (one["type"], one["subtype"]) == ("result", "success")
        assert said("t01", "aider", "--message", "x") == "t01: step 2 of 2 is done, all steps are done.\n"


def test_an_error_is_told_in_the_format_that_was_asked_for(tmp_path: Path) -> None:
    """Hazard: a failed turn that a script takes for a successful one."""
    with ShimYard(tmp_path, calls={"distribution": "fixed", "value_s": 30.0}, child_share=1.0) as yard:
        call = yard.call("claude", "-p", "x", "--output-format", "json")
        yard.kill(yard.seen("tool.start")[0].data["pid"])
        out, _ = call.communicate(timeout=20)
        assert call.returncode == 1
        told = json.loads(out)
        assert (told["subtype"], told["is_error"]) == ("error_during_execution", True)
        assert yard.told("worker.end", "reason") == [("error",)]


def test_nobody_who_reads_is_no_reason_to_stop(tmp_path: Path) -> None:
    """Hazard: `claude … | head -1` ends a worker; or a closed output makes a journal of standard output."""
    with ShimYard(tmp_path, steps=2) as yard:
        script = 'claude -p x --output-format stream-json | true; TASK_ID=t03 claude -p x >&- 2>&-; echo "$?"'
        said = subprocess.run(
            ["bash", "-c", script],
            cwd=yard.worktrees / "t02",
            env=yard.env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert said.stdout == "0\n"
        assert sorted(yard.told("worker.end", "task", "reason")) == [("t02", "done"), ("t03", "done")]
        assert len(yard.events_of("tool.return")) == 4
