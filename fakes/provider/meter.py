"""The provider's accounting: what a request asks for, what it costs, which marks it carries. Pure.

The server passes values in and writes down what comes out. A fuller provider replaces the server and keeps
this.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

MARK = re.compile(r"\[\[[a-z]+-[0-9a-zA-Z._-]+\]\]")
SECONDS_MAX = 3600.0
TOKENS_MAX = 100_000_000
CHUNKS_MAX = 10_000


class BadRequest(ValueError):
    """The body is no request. The message says why, for the client."""


@dataclass(frozen=True)
class Call:
    """One request: tokens, real seconds before the first chunk and over all of them, marks in order."""

    tokens_in: int
    tokens_out: int
    latency_s: float
    stream_s: float
    chunks: int
    marks: tuple[str, ...]

    def chunk_tokens(self) -> list[int]:
        """Tokens of each chunk; their sum is `tokens_out`."""
        cuts = [self.tokens_out * number // self.chunks for number in range(self.chunks + 1)]
        return [after - before for before, after in pairwise(cuts)]


def parse(body: bytes) -> Call:
    """Read a request's body. Raises BadRequest."""
    try:
        data = json.loads(body)
        texts = [str(message["content"]) for message in data["messages"]]
        metadata = data.get("metadata") or {}
        return Call(
            tokens_in=int(_figure(metadata, "tokens_in", sum(map(len, texts)) // 4, TOKENS_MAX)),
            tokens_out=int(_figure(metadata, "tokens_out", 16, TOKENS_MAX)),
            latency_s=_figure(metadata, "latency_s", 0, SECONDS_MAX),
            stream_s=_figure(metadata, "stream_s", 0, SECONDS_MAX),
            chunks=max(1, int(_figure(metadata, "chunks", 1, CHUNKS_MAX))),
            marks=tuple(dict.fromkeys(mark for text in texts for mark in MARK.findall(text))),
        )
    except BadRequest:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadRequest(f"not a messages request: {type(error).__name__}: {error}") from error


def _figure(metadata: Mapping[str, Any], key: str, default: float, most: float) -> float:
    value = metadata.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadRequest(f"metadata.{key} must be a number, not {value!r}")
    if not 0 <= value <= most:
        raise BadRequest(f"metadata.{key} must be between 0 and {most:g}, not {value!r}")
    return value


class Meter:
    """Counts requests and the tokens that each was streamed. Knows nothing of time or sockets."""

    def __init__(self) -> None:
        self.requests = 0
        self._streamed: dict[str, int] = {}

    def open(self) -> str:
        """A new request's id."""
        self.requests += 1
        req = f"m{self.requests}"
        self._streamed[req] = 0
        return req

    def streamed(self, req: str, tokens: int) -> None:
        """Tokens were sent for it."""
        self._streamed[req] += tokens

    def close(self, req: str) -> int:
        """It has ended; returns the tokens that it was sent in all."""
        return self._streamed.pop(req)
