"""The provider's server: server-sent events over HTTP, on the loopback, for holders of the run's token.

Each request is stamped at its arrival, before its body is read, because that is when it was issued; and a
client that hangs up is noticed at once, because what counts is what was streamed to someone.
"""

import asyncio
import json
import os
import signal
import time
from hmac import compare_digest

from aiohttp import web

from fakes.provider.meter import BadRequest, Call, Meter, parse
from scoring.journal import Journal

BODY_BYTES_MAX = 16 * 1024 * 1024


class Provider:
    """One endpoint, `POST /v1/messages`. Writes its events to `journal`."""

    def __init__(self, journal: Journal, token: str) -> None:
        self._journal = journal
        self._authorization = f"Bearer {token}".encode()
        self.meter = Meter()
        self._stopping = False

    def application(self) -> web.Application:
        """The aiohttp application."""
        application = web.Application(client_max_size=BODY_BYTES_MAX)
        application.router.add_post("/v1/messages", self._messages)
        return application

    def stop(self) -> None:
        """What is cut from here on was cut by the provider, not by its client."""
        self._stopping = True

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        arrived = time.monotonic_ns()
        given = request.headers.get("authorization", "").encode("utf-8", "surrogateescape")
        if not compare_digest(given, self._authorization):
            return web.json_response({"error": "not the token of this run"}, status=401)
        try:
            call = parse(await request.read())
        except BadRequest as error:
            return web.json_response({"error": str(error)}, status=400)
        req = self.meter.open()
        names = {"run": "x-run-id", "task": "x-task-id", "attempt": "x-attempt"}
        who: dict[str, object] = {name: request.headers.get(header, "") for name, header in names.items()}
        self._journal.write("model.open", arrived, req=req, tokens_in=call.tokens_in, marks=list(call.marks), **who)
        outcome = "error"
        try:
            response = await self._stream(request, call, req)
            outcome = "done"
        except (asyncio.CancelledError, ConnectionError):
            outcome = "error" if self._stopping else "hangup"
            raise
        finally:
            self._journal.write("model.close", req=req, tokens_out=self.meter.close(req), outcome=outcome)
        return response

    async def _stream(self, request: web.Request, call: Call, req: str) -> web.StreamResponse:
        start = time.monotonic()
        await asyncio.sleep(call.latency_s)
        response = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-store"})
        await response.prepare(request)
        for number, tokens in enumerate(call.chunk_tokens(), 1):
            # Absolute instants, because otherwise each late wake-up would make the stream a little longer.
            due = start + call.latency_s + call.stream_s * number / call.chunks
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await response.write(_event("content_block_delta", {"text": "…", "tokens": tokens}))
            self.meter.streamed(req, tokens)
            self._journal.write("model.chunk", req=req, tokens=tokens)
        usage = {"input_tokens": call.tokens_in, "output_tokens": call.tokens_out}
        await response.write(_event("message_stop", {"usage": usage}))
        await response.write_eof()
        return response


def _event(name: str, data: dict[str, object]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def serve(events: str, port_file: str, token: str) -> None:
    """Listen on a free port of the loopback until SIGTERM or SIGINT. Writes the port to `port_file`."""
    journal = Journal(events, "provider")
    provider = Provider(journal, token)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    # Without handler_cancellation aiohttp lets a handler run on when its client is gone.
    runner = web.AppRunner(provider.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = int(runner.addresses[0][1])
    journal.write("provider.begin", port=port, pid=os.getpid())
    draft = f"{port_file}.{os.getpid()}"
    with open(draft, "w", encoding="ascii") as file:  # noqa: ASYNC230 - thirty bytes, before anyone connects
        json.dump({"port": port}, file)
    os.replace(draft, port_file)
    await ended.wait()
    provider.stop()
    await runner.cleanup()
    journal.write("provider.end", requests=provider.meter.requests)
