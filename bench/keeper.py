"""How fast and how cheap the keeper watches, each against a yardstick measured in the same run, interleaved.

`exit seen`: from the kill of a process to the stamp in its proc.end, against a bare loop of pidfd and epoll
that does nothing else. `audit CPU`: one full audit of 1,024 sleeping processes, against one psutil scan that
reads the environment of every process of the machine. CPU of the keeper is the scheduler's account of its
whole process, so that its regular scans in that time count too.
"""

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from bench.ratio import Ratio, show
from drills.keeper_client import KeeperClient

ROUNDS = 60
AUDITS, PROCESSES = 20, 1_024

BARE_LOOP = """
import os, select, sys, time
epoll = select.epoll()
for line in sys.stdin:
    fd = os.pidfd_open(int(line))
    epoll.register(fd, select.EPOLLIN)
    print("watching", flush=True)
    epoll.poll()
    stamp = time.monotonic_ns()
    epoll.unregister(fd)
    os.close(fd)
    print(stamp, flush=True)
"""

FLEET = f"""
import os, signal
for _ in range({PROCESSES - 1}):
    if os.fork() == 0: signal.pause()
signal.pause()
"""


async def _start(folder: Path) -> KeeperClient:
    (folder / "events").mkdir()
    return await KeeperClient.start(f"bench.{os.getpid()}", folder / "events", log=folder / "keeper.txt")


async def _spawn(client: KeeperClient, folder: Path, *argv: str) -> tuple[int, int]:
    null = Path(os.devnull)
    path = {"PATH": os.environ["PATH"]}
    spawned = await client.spawn("it", "run", argv, env=path, cwd=folder, stdout=null, stderr=null)
    return spawned.pid, spawned.proc


def _kill(pid: int) -> int:
    """Kill a sleeping process of ours; the instant just before."""
    handle = os.pidfd_open(pid)
    deadline = time.monotonic() + 10
    # Killed while it is still being loaded, it would take longer to die, which is not the observer's doing.
    while psutil.Process(pid).status() != psutil.STATUS_SLEEPING and time.monotonic() < deadline:
        time.sleep(0.001)
    stamp = time.monotonic_ns()
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)
    return stamp


async def _keeper_latency_ns(client: KeeperClient, folder: Path) -> int:
    pid, proc = await _spawn(client, folder, "sleep", "600")
    killed = _kill(pid)
    await client.wait_exit("it", 10)
    lines = (folder / "events" / "keeper.jsonl").read_text().splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in lines if "proc.end" in line]
    return next(int(event["t"]) for event in events if event["proc"] == proc) - killed


def _bare_loop() -> "subprocess.Popen[str]":
    argv = [sys.executable, "-I", "-S", "-c", BARE_LOOP]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _bare_latency_ns(loop: "subprocess.Popen[str]") -> int:
    assert loop.stdin is not None and loop.stdout is not None
    with subprocess.Popen(["sleep", "600"]) as victim:
        loop.stdin.write(f"{victim.pid}\n")
        loop.stdin.flush()
        loop.stdout.readline()
        killed = _kill(victim.pid)
        return int(loop.stdout.readline()) - killed


async def exit_seen(folder: Path) -> Ratio:
    """Median latency of an exit, against the bare loop's."""
    client = await _start(folder)
    loop = _bare_loop()
    ours, bare = [], []
    try:
        for _ in range(ROUNDS):
            ours.append(await _keeper_latency_ns(client, folder))
            bare.append(await asyncio.to_thread(_bare_latency_ns, loop))
    finally:
        loop.communicate()
        await client.end("measured")
    a_us, b_us = statistics.median(ours) / 1e3, statistics.median(bare) / 1e3
    return Ratio("exit seen", a_us / b_us, 2.0, f"{a_us:.0f} us against {b_us:.0f} us, median of {ROUNDS}")


def _cpu_ns(pid: int) -> int:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def _psutil_scan_ns() -> int:
    before = time.process_time_ns()
    for process in psutil.process_iter():
        try:
            process.environ()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return time.process_time_ns() - before


async def _fleet(client: KeeperClient, folder: Path) -> None:
    await _spawn(client, folder, sys.executable, "-I", "-S", "-c", FLEET)
    deadline = time.monotonic() + 60
    while (seen := len(await client.alive("fleet"))) < PROCESSES:
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited 60 s for {PROCESSES} processes, saw {seen}")
        await asyncio.sleep(0.1)


async def audit_cpu(folder: Path) -> Ratio:
    """CPU of an audit, against that of a psutil scan."""
    client = await _start(folder)
    audits, scans = [], []
    try:
        await _fleet(client, folder)
        assert client.watching is not None
        for _ in range(AUDITS):
            before = _cpu_ns(client.watching.pid)
            await client.audit("bench")
            audits.append(_cpu_ns(client.watching.pid) - before)
            assert len(await client.alive("bench, to check")) == PROCESSES
            scans.append(_psutil_scan_ns())
    finally:
        await client.end("measured")
    a_ms, b_ms = statistics.median(audits) / 1e6, statistics.median(scans) / 1e6
    return Ratio("audit CPU, 1,024 processes", a_ms / b_ms, 1 / 15, f"{a_ms:.2f} ms against {b_ms:.1f} ms")


def measure() -> list[Ratio]:
    """Both ratios. Takes some ten seconds."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        return [asyncio.run(exit_seen(Path(one))), asyncio.run(audit_cpu(Path(two)))]


if __name__ == "__main__":
    print(show(measure()))
