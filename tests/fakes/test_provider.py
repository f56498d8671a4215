"""The model provider: what its meter says of requests that end well, badly, or not at all."""

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.provider.meter import BadRequest, Call, Meter, parse
from scoring.history import Event, merge
from tests.waiting import until

TOKEN = "token-of-the-test"


class Endpoint:
    """The provider as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.events = folder
        port_file = folder / "provider.json"
        argv = [sys.executable, "-I", "-m", "fakes.provider", "--events", str(folder)]
        self.process = subprocess.Popen([*argv, "--port-file", str(port_file), "--token", TOKEN])
        until(port_file.exists, what="the port file")
        self.port = json.loads(port_file.read_text())["port"]

    def send(self, body: bytes, token: str = TOKEN) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {"authorization": f"Bearer {token}", "x-run-id": "r1", "x-task-id": "t01", "x-attempt": "2"}
        connection.request("POST", "/v1/messages", body, headers)
        return connection

    def of(self, *kinds: str) -> list[Event]:
        return merge({"provider": (self.events / "provider.jsonl").read_bytes()}).of(*kinds)


def _body(text: str = "hello", **metadata: object) -> bytes:
    message = {"role": "user", "content": text}
    return json.dumps({"model": "m", "messages": [message], "metadata": metadata}).encode()


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    made = Endpoint(tmp_path)
    yield made
    made.process.kill()
    made.process.wait(5)


@pytest.mark.real
def test_a_request_is_metered_from_arrival_to_its_last_chunk(endpoint: Endpoint) -> None:
    """Hazard: tokens that the meter counts and nobody was sent, or the other way round."""
    text = "Go [[objective-r1]] and [[delta-1-2]] and [[objective-r1]] but not [[Delta]]"
    body = _body(text, tokens_in=400, tokens_out=10, latency_s=0.05, stream_s=0.1, chunks=4)
    connection = endpoint.send(body)
    answer = connection.getresponse()
    said = answer.read().decode()
    connection.close()
    assert answer.status == 200
    assert said.count("event: content_block_delta") == 4
    assert "event: message_stop" in said
    until(lambda: endpoint.of("model.close"), what="the close")
    opened, closed = endpoint.of("model.open")[0], endpoint.of("model.close")[0]
    assert opened.data["tokens_in"] == 400
    assert opened.data["marks"] == ["[[objective-r1]]", "[[delta-1-2]]"]
    assert (opened.data["run"], opened.data["task"], opened.data["attempt"]) == ("r1", "t01", "2")
    assert sum(event.data["tokens"] for event in endpoint.of("model.chunk")) == 10
    assert (closed.data["outcome"], closed.data["tokens_out"]) == ("done", 10)
    assert closed.t - opened.t >= 0.14e9


@pytest.mark.real
@pytest.mark.parametrize(("latency_s", "stream_s"), [(60.0, 0.0), (0.0, 60.0)])
def test_a_hangup_is_noticed_at_once(endpoint: Endpoint, latency_s: float, stream_s: float) -> None:
    """Hazard: tokens streamed to nobody, counted against a worker that has gone."""
    connection = endpoint.send(_body(tokens_out=600, latency_s=latency_s, stream_s=stream_s, chunks=600))
    if stream_s:
        until(lambda: endpoint.of("model.chunk"), what="the first chunk")
    else:
        until(lambda: endpoint.of("model.open"), what="the request")
    connection.close()
    closed = until(lambda: endpoint.of("model.close"), within_s=5.0, what="the hangup")[0]
    assert closed.data["outcome"] == "hangup"
    assert closed.data["tokens_out"] == len(endpoint.of("model.chunk")) < 100


@pytest.mark.real
def test_strangers_and_nonsense_are_not_metered(endpoint: Endpoint) -> None:
    """Hazard: tokens of a request that was never served."""
    assert endpoint.send(_body(), token="guess").getresponse().status == 401
    assert endpoint.send(b"{").getresponse().status == 400
    assert endpoint.send(_body(chunks="many")).getresponse().status == 400
    assert [event.kind for event in endpoint.of("provider.begin", "model.open")] == ["provider.begin"]


@pytest.mark.real
def test_sigterm_cuts_the_streams_and_says_how_many_there_were(endpoint: Endpoint) -> None:
    """Hazard: a meter without an end, which could be a meter that was killed."""
    connection = endpoint.send(_body(latency_s=60))
    until(lambda: endpoint.of("model.open"), what="the request")
    endpoint.process.send_signal(signal.SIGTERM)
    assert endpoint.process.wait(10) == 0
    connection.close()
    assert endpoint.of("model.close")[0].data["outcome"] == "error"
    assert endpoint.of("provider.end")[0].data["requests"] == 1


def test_chunks_share_out_all_tokens() -> None:
    """Hazard: tokens lost in the division."""
    assert Call(1, 10, 0, 0, 4, ()).chunk_tokens() == [2, 3, 2, 3]
    assert Call(1, 0, 0, 0, 2, ()).chunk_tokens() == [0, 0]


def test_the_meter_counts_each_request_by_itself() -> None:
    """Hazard: one request's tokens on another's account."""
    meter = Meter()
    first, second = meter.open(), meter.open()
    meter.streamed(first, 3)
    meter.streamed(second, 4)
    meter.streamed(first, 5)
    assert (meter.close(second), meter.close(first), meter.requests) == (4, 8, 2)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"messages": 1}',
        b'{"messages": [1]}',
        b'{"messages": [], "metadata": {"tokens_in": -1}}',
        b'{"messages": [], "metadata": {"latency_s": NaN}}',
        b'{"messages": [], "metadata": {"chunks": true}}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_request_is_refused_with_a_reason(body: bytes) -> None:
    """Hazard: a traceback, which the client would see as a provider that is down."""
    with pytest.raises(BadRequest):
        parse(body)
