"""The post office: one reply per request, whatever else happens to the files."""

import asyncio
import json
import multiprocessing
from pathlib import Path

import pytest

from fakes.coordinators.mailbox import Mailbox, NoReply, Request


async def take(box: Mailbox, n: int) -> list[Request]:
    """The next `n` requests, within five seconds."""
    found: list[Request] = []

    async def collect() -> None:
        async for request in box.requests():
            found.append(request)
            if len(found) == n:
                return

    await asyncio.wait_for(collect(), 5)
    return found


def test_requests_arrive_in_their_order_and_are_answered(tmp_path: Path) -> None:
    """An abort that overtakes or is overtaken by accident changes what the operator meant."""
    operator, coordinator = Mailbox(str(tmp_path)), Mailbox(str(tmp_path))
    seqs = [operator.send(verb, {"k": verb}) for verb in ("start", "pause", "abort")]

    async def scene() -> dict[str, object]:
        requests = await take(coordinator, 3)
        assert [(r.seq, r.verb, r.args) for r in requests] == [
            (seq, verb, {"k": verb}) for seq, verb in zip(seqs, ("start", "pause", "abort"), strict=True)
        ]
        coordinator.answer(requests[2], {"ok": True, "state": "aborted"})
        return await operator.reply(seqs[2], 2)

    reply = asyncio.run(scene())
    assert (reply["state"], isinstance(reply["t"], int)) == ("aborted", True)


def test_no_reply_is_an_error_that_says_so(tmp_path: Path) -> None:
    """A wait without a bound hides a coordinator that is gone."""
    box = Mailbox(str(tmp_path))
    with pytest.raises(NoReply, match=r"request 1 was not answered within 0\.05 s"):
        asyncio.run(box.reply(box.send("abort"), 0.05))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("0-abort.json", "{"),
        ("0-abort.json", "[]"),
        ("0-abort.json", json.dumps({"verb": "pause", "seq": 0, "args": {}})),
        ("0-abort.json", json.dumps({"verb": "abort", "seq": 0, "args": []})),
        ("hello.json", json.dumps({"verb": "abort", "seq": 0})),
        ("0-abort.json", b"\xff\xfe".decode("latin-1")),
    ],
)
def test_a_malformed_request_is_answered_and_moved_aside(tmp_path: Path, name: str, text: str) -> None:
    """One unreadable file must neither stop the coordinator nor stay silently unanswered."""
    box = Mailbox(str(tmp_path))
    (tmp_path / "requests" / name).write_text(text, encoding="latin-1")
    box.send("status")
    assert [r.verb for r in asyncio.run(take(box, 1))] == ["status"]
    reply = json.loads((tmp_path / "replies" / name).read_text())
    assert (reply["ok"], "malformed" in reply["error"]) == (False, True)
    assert (tmp_path / "malformed" / name).exists()
    assert not (tmp_path / "requests" / name).exists()


def test_an_unanswered_request_is_found_by_the_next_coordinator(tmp_path: Path) -> None:
    """An abort that was taken by a coordinator that died must not be lost, and an answered one not
    repeated.
    """
    box = Mailbox(str(tmp_path))
    box.send("pause")
    box.send("abort")
    answered, _ = asyncio.run(take(box, 2))
    box.answer(answered, {"ok": True, "state": "paused"})
    assert [r.verb for r in asyncio.run(take(Mailbox(str(tmp_path)), 1))] == ["abort"]


def _send_many(control: str) -> None:
    box = Mailbox(control)
    for _ in range(25):
        box.send("status")


def test_operators_at_once_never_share_a_number(tmp_path: Path) -> None:
    """Two operators with one number would read each other's answer."""
    context = multiprocessing.get_context("spawn")
    operators = [context.Process(target=_send_many, args=(str(tmp_path),)) for _ in range(2)]
    for operator in operators:
        operator.start()
    for operator in operators:
        operator.join(20)
    names = sorted(int(p.name.split("-")[0]) for p in (tmp_path / "requests").iterdir())
    assert names == list(range(1, 51))


def test_a_verb_cannot_leave_the_folder(tmp_path: Path) -> None:
    """A verb becomes part of a file name."""
    with pytest.raises(ValueError, match="small letters"):
        Mailbox(str(tmp_path)).send("../abort")
