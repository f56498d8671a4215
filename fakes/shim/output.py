"""What a shim prints: shaped like the CLI that it stands for, with the task's true figures in it.

Three styles: `text` (the last message), `json` (one object at the end), `lines` (one object for each thing that
happens). Whoever reads it may have gone: then nothing more is printed, and the work goes on, because the agent's
process is what is drilled and not its pipe.
"""

import json
import os
import time

from fakes.worker.tool import write_all

_MODEL = "simulated"
Record = dict[str, object]


class Tally:
    """What the turn has used so far."""

    __slots__ = ("began_ns", "requests", "steps", "tokens_in", "tokens_out")

    def __init__(self) -> None:
        self.began_ns = time.monotonic_ns()
        self.requests = self.steps = self.tokens_in = self.tokens_out = 0

    def took_ms(self) -> int:
        """Since the turn began."""
        return (time.monotonic_ns() - self.began_ns) // 1_000_000

    def usage(self) -> Record:
        """As most CLIs report it."""
        return {"input_tokens": self.tokens_in, "output_tokens": self.tokens_out}


class Output:
    """Prints as a CLI does. `style` is its output format as `style_of` names it."""

    def __init__(self, cli: str, style: str, session: str, tally: Tally) -> None:
        self._cli, self._style, self._session, self._tally = cli, style, session, tally
        self._talk: Talk = _TALKS.get(cli, Talk)(session, tally)
        self._open = True

    def begin(self) -> None:
        """The turn begins."""
        self._print(self._talk.begin())

    def step(self, text: str) -> None:
        """A tool call has returned."""
        self._print(self._talk.step(text))

    def end(self, text: str, error: bool) -> None:
        """The turn is over."""
        if self._style == "lines":
            self._print(self._talk.end(text, error))
        elif self._style == "json":
            self._write(json.dumps(self._talk.result(text, error)))
        else:
            self._write(text)

    def _print(self, records: list[Record]) -> None:
        if self._style == "lines":
            for record in records:
                self._write(json.dumps(record))

    def _write(self, line: str) -> None:
        if not self._open:
            return
        try:
            write_all(1, f"{line}\n".encode("utf-8", "replace"), "standard output")
        except OSError:
            self._open = False


def style_of(cli: str, form: str) -> str:
    """`text`, `json` or `lines`, for the output format that was asked for."""
    if form in ("json", "jsonl", "ndjson") and cli in ("codex", "opencode"):
        return "lines"
    return {"json": "json", "stream-json": "lines", "jsonl": "lines", "ndjson": "lines"}.get(form, "text")


def new_session(cli: str) -> str:
    """An id that looks like the CLI's."""
    digits = os.urandom(16).hex()
    if cli == "opencode":
        return f"ses_{digits[:26]}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class Talk:
    """Claude Code's words, which many follow: system/init, assistant, result."""

    def __init__(self, session: str, tally: Tally) -> None:
        self._session, self._tally = session, tally

    def begin(self) -> list[Record]:
        here = os.getcwd()
        init = {"type": "system", "subtype": "init", "cwd": here, "session_id": self._session, "model": _MODEL}
        return [{**init, "tools": ["Bash", "Edit"], "permissionMode": "default"}]

    def step(self, text: str) -> list[Record]:
        content = [{"type": "text", "text": text}]
        message = {"role": "assistant", "model": _MODEL, "content": content, "usage": self._tally.usage()}
        return [{"type": "assistant", "message": message, "session_id": self._session}]

    def end(self, text: str, error: bool) -> list[Record]:
        return [self.result(text, error)]

    def result(self, text: str, error: bool) -> Record:
        took = self._tally.took_ms()
        return {
            "type": "result",
            "subtype": "error_during_execution" if error else "success",
            "is_error": error,
            "duration_ms": took,
            "duration_api_ms": took,
            "num_turns": max(1, self._tally.steps),
            "result": text,
            "session_id": self._session,
            "total_cost_usd": 0.0,
            "usage": self._tally.usage(),
        }


class Codex(Talk):
    """`codex exec --json`: thread, turn and items."""

    def begin(self) -> list[Record]:
        return [{"type": "thread.started", "thread_id": self._session}, {"type": "turn.started"}]

    def step(self, text: str) -> list[Record]:
        item = {"id": f"item_{self._tally.steps}", "type": "agent_message", "text": text}
        return [{"type": "item.completed", "item": item}]

    def end(self, text: str, error: bool) -> list[Record]:
        if error:
            return [{"type": "turn.failed", "error": {"message": text}}]
        usage = {**self._tally.usage(), "cached_input_tokens": 0}
        return [*self.step(text), {"type": "turn.completed", "usage": usage}]


class Gemini(Talk):
    """Gemini CLI: init, message, result; `response` and `stats` in one object."""

    def begin(self) -> list[Record]:
        return [{"type": "init", "session_id": self._session, "model": _MODEL}]

    def step(self, text: str) -> list[Record]:
        return [{"type": "message", "role": "assistant", "content": text, "delta": True}]

    def end(self, text: str, error: bool) -> list[Record]:
        return [{"type": "result", "status": "error" if error else "success", "stats": self._stats()}]

    def result(self, text: str, error: bool) -> Record:
        told: Record = {"error": {"message": text}} if error else {"response": text}
        return {"session_id": self._session, **told, "stats": self._stats()}

    def _stats(self) -> Record:
        tally = self._tally
        tokens: Record = {"total_tokens": tally.tokens_in + tally.tokens_out, **tally.usage()}
        return {**tokens, "duration_ms": tally.took_ms(), "tool_calls": tally.steps}


class Opencode(Talk):
    """`opencode run --format json`: parts of a session."""

    def begin(self) -> list[Record]:
        return [self._part("step_start", {"type": "step-start"})]

    def step(self, text: str) -> list[Record]:
        return [self._part("text", {"type": "text", "text": text})]

    def end(self, text: str, error: bool) -> list[Record]:
        if error:
            return [{"type": "error", "sessionID": self._session, "error": {"message": text}}]
        tokens = {"input": self._tally.tokens_in, "output": self._tally.tokens_out}
        finish: Record = {"type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0}
        return [*self.step(text), self._part("step_finish", finish)]

    def _part(self, kind: str, part: Record) -> Record:
        stamp = time.time_ns() // 1_000_000
        return {"type": kind, "timestamp": stamp, "sessionID": self._session, "part": part}


_TALKS: dict[str, type[Talk]] = {"codex": Codex, "gemini": Gemini, "qwen": Gemini, "opencode": Opencode}
