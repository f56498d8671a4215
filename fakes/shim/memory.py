"""What one call leaves for the next ones on the same task: `shim/TASK.json`, replaced as a whole after each step.

Real CLIs keep sessions of their own; and since nobody is made to commit, the step to go on with can't always be
read off the branch. Two calls at once may overwrite each other's notes, as two agents in one worktree would; the
step never goes back.
"""

import json
import os
import re

TEXTS_MAX = 50
_MARK = re.compile(r"\[\[[a-z]+-[0-9a-zA-Z._-]+\]\]")


class Memory:
    """The notes of one task. `step` is the last one done, `prompt` the last one given, `texts` the session's."""

    __slots__ = ("_path", "prompt", "session", "step", "texts")

    def __init__(self, folder: str, task: str) -> None:
        self._path = os.path.join(folder, task + ".json")
        self.step, self.prompt, self.session = self._step(), "", ""
        self.texts: list[str] = []
        known = self._read()
        self.prompt, self.session = str(known.get("prompt", "")), str(known.get("session", ""))
        texts = known.get("texts")
        if isinstance(texts, list):
            self.texts = [str(text) for text in texts]

    def save(self) -> None:
        """Write it whole or not at all."""
        self.step = max(self.step, self._step())
        draft = f"{self._path}.{os.getpid()}"
        with open(draft, "w", encoding="ascii") as file:
            texts = self.texts[-TEXTS_MAX:]
            json.dump({"step": self.step, "prompt": self.prompt, "session": self.session, "texts": texts}, file)
        os.replace(draft, self._path)

    def _step(self) -> int:
        step = self._read().get("step")
        return step if type(step) is int else 0

    def _read(self) -> dict[str, object]:
        try:
            with open(self._path, encoding="ascii") as file:
                known = json.load(file)
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}


def told_as(prompt: str, last: str) -> str | None:
    """As what a worker that is at work receives this prompt: delta, instruction, objective or prompt.

    None when it is the last one again, the numbers in it left aside: a loop says "do step 4" after "do step 3". A
    prompt without marks is a new objective only when no line of the last one is left in it; otherwise it is a
    `prompt`, which no check reads, because a loop that tells its agent what has happened so far changes no goal.
    """
    if _lines(prompt) == _lines(last) and _MARK.findall(prompt) == _MARK.findall(last):
        return None
    for what in ("delta", "instruction"):
        if f"[[{what}-" in prompt:
            return what
    return "prompt" if set(_lines(prompt)) & set(_lines(last)) else "objective"


def _lines(text: str) -> list[str]:
    return [re.sub(r"\d+", "#", line.strip()) for line in text.splitlines() if line.strip()]
