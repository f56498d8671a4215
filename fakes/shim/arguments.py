"""Reading one command line by a CLI's table (`tables`). Never fails: what isn't known is kept in `unknown`.

Not argparse, which costs more to import than the interpreter to start, and which gives up at an unknown flag.
A value can't be told from a prompt when it follows a flag that nobody knows, so such a word is the prompt only
where no other word is.
"""

from fakes.shim.tables import ANY, TABLES, Table

_PLAIN = ("print", "json", "continue", "switch", "version", "help")


class Arguments:
    """What was asked for. `prompt` is None when it is to come from `prompt_file` or from standard input."""

    __slots__ = (
        "answer", "cwd", "format", "last_message", "prompt", "prompt_file", "resumed", "session", "turns", "unknown"
    )  # fmt: skip

    def __init__(self) -> None:
        self.prompt: str | None = None
        self.prompt_file = ""
        self.cwd = ""
        self.format = ""  # as the CLI names it; empty is plain text
        self.session = ""
        self.resumed = False
        self.turns = 0  # 0: no limit
        self.unknown: list[str] = []  # names of flags, without values: those may be secrets
        self.answer = ""  # the text of --version and the like: then there is nothing else to do
        self.last_message = ""  # a file that gets the last message


def parse(name: str, words: list[str]) -> Arguments:
    """What a call of CLI `name` with these words asks for."""
    return _Parser(name, TABLES.get(name, ANY)).read(words)


class _Parser:
    def __init__(self, name: str, table: Table) -> None:
        self._name, self._table = name, table
        self._flags = {
            flag: meaning
            for meaning, flags in table.items()
            if meaning not in ("run", "manage", "rest", "says")
            for flag in flags.split()
        }
        self._found = Arguments()
        self._words: list[str] = []  # still to be read
        self._rest: list[str] = []  # words that are no flag
        self._doubtful: list[str] = []  # words after an unknown flag: its value, or one of the rest
        self._last = False  # codex exec resume --last

    def read(self, words: list[str]) -> Arguments:
        self._words = words[::-1]
        while self._words:
            word = self._words.pop()
            if word == "--":
                self._rest += self._words[::-1]
                break
            if word[:1] != "-" or word == "-":
                self._rest.append(word)
            elif word.startswith("--"):
                name, equals, value = word.partition("=")
                self._flag(name, value if equals else None)
            else:
                self._short(word)
        self._settle()
        return self._found

    def _short(self, word: str) -> None:
        """`-p`, `-pc`, `-mVALUE`, `-m=VALUE`."""
        for at in range(1, len(word)):
            meaning = self._flags.get("-" + word[at])
            if meaning is None:
                self._flag(word, None)
                return
            tail = word[at + 1 :]
            if meaning not in _PLAIN or tail[:1] == "=":
                self._flag("-" + word[at], tail.removeprefix("=") if tail else None)
                return
            self._flag("-" + word[at], None)

    def _flag(self, name: str, value: str | None) -> None:
        meaning = self._flags.get(name, "")
        if not meaning:
            self._found.unknown.append(name)
            if value is None and self._next_is_word():
                self._doubtful.append(self._words.pop())
        elif meaning in _PLAIN:
            self._plain(name, meaning, value)
        elif meaning == "many":
            while value is None and self._next_is_word():
                self._words.pop()
        elif meaning == "resume":
            self._found.resumed = True
            self._found.session = value or (self._words.pop() if self._next_is_word() else "")
        else:
            self._value(meaning, value if value is not None else (self._words.pop() if self._words else ""))

    def _next_is_word(self) -> bool:
        return bool(self._words) and not self._words[-1].startswith("-")

    def _plain(self, name: str, meaning: str, value: str | None) -> None:
        if meaning == "print" and value is not None:
            self._found.prompt = value
        elif meaning == "json":
            self._found.format = "json"
        elif meaning == "continue":
            self._found.resumed = True
        elif meaning == "version":
            self._found.answer = f"{self._table['says']}, simulated by stopdrill"
        elif meaning == "help":
            self._found.answer = f"usage: {self._name} [options] PROMPT\nA simulated worker of stopdrill."
        elif name == "--last":
            self._last = self._found.resumed = True

    def _value(self, meaning: str, value: str) -> None:
        found = self._found
        if meaning == "prompt":
            found.prompt = value
        elif meaning == "prompt-file":
            found.prompt_file = value
        elif meaning == "cwd":
            found.cwd = value
        elif meaning == "format":
            found.format = "" if value in ("text", "default") else value
        elif meaning == "session":
            found.session = value
            # opencode has one flag for both, and a session must be there already.
            found.resumed = found.resumed or self._name == "opencode"
        elif meaning == "turns":
            found.turns = int(value) if value.isascii() and value.isdigit() else 0
        elif meaning == "last-message":
            found.last_message = value

    def _settle(self) -> None:
        """Find commands and the prompt among the words that are no flag."""
        found, rest = self._found, self._rest
        if rest and rest[0] in self._table.get("manage", "").split():
            found.answer = found.answer or f"{self._name} {rest[0]}: nothing to do, this is a simulated worker"
        if rest and rest[0] in self._table.get("run", "").split():
            del rest[0]
            if self._name == "codex" and rest[:1] == ["resume"]:
                self._settle_resume()
        if self._table["rest"] == "files" or found.prompt is not None:
            return
        words = rest or self._doubtful
        prompt = " ".join(words if self._table["rest"] == "all" else words[:1])
        if prompt and prompt != "-":  # a lone dash is standard input
            found.prompt = prompt

    def _settle_resume(self) -> None:
        """`codex exec resume (SESSION | --last) [PROMPT]`."""
        del self._rest[0]
        self._found.resumed = True
        if self._rest and not self._last:
            self._found.session = self._rest.pop(0)
