"""Command lines as scripts write them, for each CLI that the shims stand for."""

import shlex
from typing import Any

import pytest

from fakes.shim.arguments import Arguments, parse
from fakes.shim.output import style_of

LINES: list[tuple[str, dict[str, Any]]] = [
    # Claude Code
    ("claude -p 'do it'", {"prompt": "do it"}),
    ("claude --print 'do it' --output-format json", {"prompt": "do it", "format": "json"}),
    ("claude 'do it' -p", {"prompt": "do it"}),
    ("claude --print='do it'", {"prompt": "do it"}),
    ("claude -p", {"prompt": None}),
    ("claude -p --output-format=stream-json --verbose 'do it'", {"prompt": "do it", "format": "stream-json"}),
    ("claude -p 'do it' --output-format text", {"prompt": "do it", "format": ""}),
    ("claude -p --model opus --permission-mode bypassPermissions 'do it'", {"prompt": "do it"}),
    ("claude -p 'do it' --allowedTools 'Bash(git:*)' Edit Write --max-turns 3", {"prompt": "do it", "turns": 3}),
    ("claude --dangerously-skip-permissions -p 'do it'", {"prompt": "do it"}),
    ("claude -p --max-turns=1 'do it'", {"prompt": "do it", "turns": 1}),
    ("claude -p --max-turns many 'do it'", {"prompt": "do it", "turns": 0}),
    ("claude -p --resume 5f-1 'go on'", {"prompt": "go on", "session": "5f-1", "resumed": True}),
    ("claude -r 5f-1 -p 'go on'", {"prompt": "go on", "session": "5f-1", "resumed": True}),
    ("claude -c -p 'go on'", {"prompt": "go on", "session": "", "resumed": True}),
    ("claude -pc 'go on'", {"prompt": "go on", "resumed": True}),
    ("claude -p --session-id 5f-2 'do it'", {"prompt": "do it", "session": "5f-2", "resumed": False}),
    ("claude -p -- '-starts with a dash'", {"prompt": "-starts with a dash"}),
    ("claude -p --mcp-config a.json b.json -- 'do it'", {"prompt": "do it"}),
    ("claude -p --of-next-year 'do it'", {"prompt": "do it", "unknown": ["--of-next-year"]}),
    ("claude --of-next-year 5 -p 'do it'", {"prompt": "do it", "unknown": ["--of-next-year"]}),
    ("claude -p 'do it' --of-next-year=secret -Z", {"prompt": "do it", "unknown": ["--of-next-year", "-Z"]}),
    ("claude -p '' --model opus", {"prompt": None}),
    ("claude -p 'ünï ✓' --append-system-prompt 'be quick'", {"prompt": "ünï ✓"}),
    # Codex
    ("codex exec 'do it'", {"prompt": "do it"}),
    ("codex e 'do it' --json", {"prompt": "do it", "format": "json"}),
    ("codex exec -", {"prompt": None}),
    ("codex exec --cd ../t03 --full-auto 'do it'", {"prompt": "do it", "cwd": "../t03"}),
    ("codex -C/a/b exec 'do it'", {"prompt": "do it", "cwd": "/a/b"}),
    ("codex -m gpt-5 -c model_reasoning_effort=low exec 'do it'", {"prompt": "do it"}),
    ("codex exec -s danger-full-access -a never --skip-git-repo-check 'do it'", {"prompt": "do it"}),
    ("codex exec -o last.txt 'do it'", {"prompt": "do it", "last_message": "last.txt"}),
    ("codex exec resume 0199 'go on'", {"prompt": "go on", "session": "0199", "resumed": True}),
    ("codex exec resume --last 'go on'", {"prompt": "go on", "session": "", "resumed": True}),
    ("codex exec resume --last -", {"prompt": None, "resumed": True}),
    ("codex exec --disable plugins --disable apps 'do it'", {"prompt": "do it"}),
    ("codex 'do it'", {"prompt": "do it"}),
    # Gemini
    ("gemini -p 'do it'", {"prompt": "do it"}),
    ("gemini --prompt='do it' --yolo -o stream-json", {"prompt": "do it", "format": "stream-json"}),
    ("gemini -y -m gemini-3-pro -p 'do it' --output-format json", {"prompt": "do it", "format": "json"}),
    ("gemini do it", {"prompt": "do it"}),
    ("gemini -ym pro 'do it'", {"prompt": "do it"}),
    ("gemini --resume latest -p 'go on'", {"prompt": "go on", "session": "latest", "resumed": True}),
    # opencode
    ("opencode run do it now", {"prompt": "do it now"}),
    ("opencode run --format json -m fake/m 'do it'", {"prompt": "do it", "format": "json"}),
    ("opencode run --dir /a/b --agent build 'do it'", {"prompt": "do it", "cwd": "/a/b"}),
    ("opencode run -s ses_1 'go on'", {"prompt": "go on", "session": "ses_1", "resumed": True}),
    ("opencode run --continue 'go on' --format default", {"prompt": "go on", "resumed": True, "format": ""}),
    # aider
    ("aider --message 'do it' --yes-always a.py b.py", {"prompt": "do it"}),
    ("aider -m 'do it' --no-auto-commits --model sonnet", {"prompt": "do it"}),
    ("aider --yes --message-file task.md a.py", {"prompt": None, "prompt_file": "task.md"}),
    ("aider a.py --read b.md --msg='do it'", {"prompt": "do it"}),
    # cursor-agent
    ("cursor-agent -p 'do it' --output-format stream-json -f", {"prompt": "do it", "format": "stream-json"}),
    ("cursor-agent -p --force --model auto 'do it'", {"prompt": "do it"}),
    ("cursor-agent --resume=c1 -p 'go on'", {"prompt": "go on", "session": "c1", "resumed": True}),
    ("cursor-agent agent -p 'do it'", {"prompt": "do it"}),
    # names that are nobody's
    ("mine --message 'do it' --cwd /a --json", {"prompt": "do it", "cwd": "/a", "format": "json"}),
    ("mine run 'do it' --max-turns 2", {"prompt": "do it", "turns": 2}),
    ("mine", {"prompt": None}),
]


@pytest.mark.parametrize(("line", "expected"), LINES, ids=[line for line, _ in LINES])
def test_a_command_line_means_what_it_means_to_the_cli(line: str, expected: dict[str, Any]) -> None:
    """Hazard: an unchanged script whose prompt, folder or session is taken for something else."""
    name, *words = shlex.split(line)
    found = parse(name, words)
    everything = {"unknown": [], "answer": "", **expected}
    assert {key: getattr(found, key) for key in everything} == everything


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("claude --version", "2.1.197 (Claude Code)"),
        ("codex -V", "codex-cli"),
        ("opencode --version", "1.18"),
        ("aider --help", "usage: aider"),
        ("gemini -h", "usage: gemini"),
        ("claude mcp list", "nothing to do"),
        ("codex login status", "nothing to do"),
        ("cursor-agent status", "nothing to do"),
    ],
)
def test_questions_about_the_cli_itself_are_answered_shortly(line: str, says: str) -> None:
    """Hazard: a script's check of the version starts a worker."""
    name, *words = shlex.split(line)
    assert says in parse(name, words).answer


def test_no_command_line_is_refused() -> None:
    """Hazard: a traceback for a flag that came with last week's release."""
    odd = ["-", "--", "--=x", "-=", "---", "--max-turns", "--resume", "-C", "-p=", "\udcff", "a\nb", "-é"]
    for name in ("claude", "codex", "gemini", "opencode", "aider", "cursor-agent", "mine"):
        for first in odd:
            for second in odd:
                assert isinstance(parse(name, [first, second]), Arguments)


def test_each_cli_has_its_own_word_for_a_line_at_a_time() -> None:
    """Hazard: one object where a reader waits for lines."""
    assert [style_of(cli, "json") for cli in ("claude", "gemini", "cursor-agent")] == ["json"] * 3
    assert [style_of(cli, "json") for cli in ("codex", "opencode")] == ["lines"] * 2
    assert [style_of("claude", form) for form in ("stream-json", "", "yaml")] == ["lines", "text", "text"]
