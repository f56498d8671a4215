"""The worker's model client: one streamed request over a plain socket, read to its end, bounded.

`http.client` is left out because it costs more to import than the rest of the worker. What the model says
does not matter, only that it was asked, with which messages; so the stream is read and thrown away.
"""

import _socket
import json
import time

SLACK_S = 5.0
_END = b"event: message_stop"


class Model:
    """The endpoint of the run. `metadata` is the task's `model` record of the plan, passed on as it is."""

    def __init__(self, url: str, token: str, run: str, task: str, attempt: int) -> None:
        host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
        self._address = (host, int(port))
        self._head = (
            f"POST /v1/messages HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {token}\r\n"
            f"x-run-id: {run}\r\nx-task-id: {task}\r\nx-attempt: {attempt}\r\n"
            "content-type: application/json\r\nconnection: close\r\n"
        )

    def ask(self, texts: list[str], metadata: dict[str, object]) -> str | None:
        """Send these texts, read the answer to its end. None when all went well, else what went wrong."""
        promised = (metadata.get("latency_s"), metadata.get("stream_s"))
        deadline = time.monotonic() + SLACK_S + sum(s for s in promised if isinstance(s, int | float))
        messages = [{"role": "user", "content": text} for text in texts]
        body = json.dumps({"model": "fake", "messages": messages, "metadata": metadata}).encode()
        request = f"{self._head}content-length: {len(body)}\r\n\r\n".encode() + body
        connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        try:
            connection.settimeout(SLACK_S)
            connection.connect(self._address)
            connection.sendall(request)
            return _read_to_end(connection, deadline)
        except TimeoutError:
            return "the model did not answer in time"
        except OSError as error:
            return f"the model could not be reached: {error}"
        finally:
            connection.close()


def _read_to_end(connection: _socket.socket, deadline: float) -> str | None:
    answer = b""
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return "the model's stream did not end in time"
        connection.settimeout(left_s)
        data = connection.recv(65536)
        if not data:
            break
        answer += data
    status = answer[:64].split(b"\r\n")[0].decode("ascii", "replace")
    if " 200 " not in status + " ":
        return f"the model answered {status or 'nothing'}"
    return None if _END in answer else "the model's stream was cut"
