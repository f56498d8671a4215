"""One HTTP request of an action or a question: bounded, without redirects, without a proxy of the user's.

A 3xx is an answer like any other, because a stop that was sent on to another address has not been heard.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

_BODY_BYTES_MAX = 4 << 20


class Unreachable(Exception):
    """No HTTP answer; the text says why."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, its body cut at 4 MiB."""

    status: int
    body: str


async def request(
    method: str,
    url: str,
    body: Any,
    headers: Mapping[str, str],
    within_s: float,
    sent: Callable[[], None] = lambda: None,
) -> Answer:
    """Send and read the answer. `body` is sent as JSON unless it is None; `sent` is called when it is out."""
    options = {} if body is None else {"json": body}
    bound = aiohttp.ClientTimeout(total=within_s)
    try:
        async with (
            aiohttp.ClientSession(timeout=bound, trace_configs=[_telling(sent, body is not None)]) as session,
            session.request(method, url, headers=headers, allow_redirects=False, **options) as response,
        ):
            data = await _read(response.content)
            return Answer(response.status, data.decode("utf-8", "replace"))
    except TimeoutError:
        raise Unreachable(f"{method} {url} was not answered within {within_s:.3g} s (real time)") from None
    except (aiohttp.ClientError, ValueError, OSError) as error:
        raise Unreachable(f"{method} {url}: {error or type(error).__name__}") from None


async def _read(content: aiohttp.StreamReader) -> bytes:
    data = b""
    while len(data) < _BODY_BYTES_MAX and (part := await content.read(_BODY_BYTES_MAX - len(data))):
        data += part
    return data


def _telling(sent: Callable[[], None], has_body: bool) -> aiohttp.TraceConfig:
    """Calls `sent` at the last thing that is written: the body, or the headers where there is none."""
    trace = aiohttp.TraceConfig()

    async def tell(*_: Any) -> None:
        sent()

    (trace.on_request_chunk_sent if has_body else trace.on_request_headers_sent).append(tell)
    return trace
