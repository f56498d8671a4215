"""The words of the history: every kind of event, who writes it, what it must carry.

One table, used where events are read (a known kind without its required keys is damage, not data) and where
they are documented (`stopdrill catalogue events` prints it). Keys beyond the required ones are allowed:
writers may tell more. Times inside events are CLOCK_MONOTONIC nanoseconds when the key ends in `_t`, real
seconds when it ends in `_s`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind of event: its name, the source that writes it, required keys, and what it says."""

    name: str
    source: str
    required: frozenset[str]
    says: str


def _kinds(source: str, table: dict[str, tuple[str, str]]) -> dict[str, Kind]:
    return {name: Kind(name, source, frozenset(required.split()), says) for name, (required, says) in table.items()}


KINDS: dict[str, Kind] = {
    **_kinds(
        "driver",
        {
            "run.begin": ("run drill subject config", "the run starts; config is what scoring needs to know"),
            "observe.missing": ("what why", "something that this run cannot observe"),
            "fleet.at-work": ("workers", "every worker has been seen in a tool call: the drill clock starts"),
            "condition.met": ("control n condition", "the condition that a control waited for came true"),
            "condition.expired": (
                "control n condition",
                "it did not come true in time; the control was not issued",
            ),
            "control.issue": ("control n scope", "the operator issues a control: instant c"),
            "control.delivered": ("control n", "the control was handed to the subject"),
            "control.ack": ("control n state", "the subject answered; the state is its own word"),
            "control.question": ("control n text", "the subject asked something instead of acting"),
            "control.error": ("control n reason", "the adapter raised"),
            "control.timeout": ("control n after_s", "no answer within the bound"),
            "control.absent": ("control n", "the subject has no such control"),
            "quiet.seen": ("control n", "the driver, watching live, saw no tool call in flight"),
            "claim.manifest": ("entry", "a line of the subject's manifest"),
            "claim.table": ("n tasks written_t", "the subject's keep/modify/drop table"),
            "claim.killed": ("entry", "a `killed dirty` line of the subject"),
            "claim.stalled": ("task", "the subject says that it noticed a stalled worker"),
            "claim.sweep": ("alive dirty", "the subject's own sweep: what it believes to be left"),
            "claim.usage": ("tokens", "the tokens that the subject believes to have spent"),
            "claims.collected": (
                "final",
                "the subject was asked for all its claims; those made so far are above",
            ),
            "claim.state": ("state", "the subject's terminal state, asked after the last control"),
            "subject.exit": ("status", "the subject's main process has exited"),
            "worktree.state": (
                "when task path exists branch head wip_step dirty half_written locks",
                "what git says about one worktree, read without taking locks",
            ),
            "refs.state": ("when where refs stashes", "all refs of one repository, and its stash entries"),
            "fault.inject": ("fault target", "the drill broke something on purpose"),
            "fault.done": ("fault target", "and has mended it, where it mends it"),
            "harness.trouble": ("what why", "the harness could not do its own job"),
            "run.interrupted": ("by", "the run was ended from outside"),
            "run.end": ("reason sources", "last event; sources gives the number of lines of every file"),
        },
    ),
    **_kinds(
        "keeper",
        {
            "keeper.begin": ("pid subreaper cgroup exit_info", "how processes are watched in this run"),
            "proc.start": ("proc pid ppid role cmdline", "a process of the run was seen first"),
            "proc.exec": ("proc pid cmdline", "it runs another program now"),
            "proc.state": ("proc pid state", "its scheduler state became T (frozen) or left it"),
            "proc.end": ("proc pid", "it is gone; status or signal where the kernel tells"),
            "audit": ("when alive", "full enumeration of the run's living processes, repeated until stable"),
            "keeper.kill": ("why count", "the keeper ends the run"),
            "keeper.end": ("why left", "the keeper's last event; left names what would not die"),
        },
    ),
    **_kinds("canary", {"canary": ("window_s n p50_us p99_us max_us", "how late a 10 ms sleep came back")}),
    **_kinds(
        "bystander",
        {
            "bystander.begin": ("name pid", "a process outside the run that looks like one of it"),
            "bystander.signal": ("name signal sender", "it was signalled: a stop reached too far"),
            "bystander.end": ("name", "it was dismissed by the harness"),
        },
    ),
    **_kinds(
        "worker",
        {
            "worker.begin": (
                "task attempt pid step",
                "a worker starts; step is the first one that it will do",
            ),
            "worker.end": ("task attempt pid reason", "it leaves by itself: done, stop, drop, term or error"),
            "worker.parked": ("task step", "it stands at a boundary because of a hold"),
            "worker.unparked": ("task step", "it goes on"),
            "worker.signal": ("task pid signal", "it received a signal"),
            "message": ("task what text", "it was given a message: objective, delta or instruction"),
            "boundary": ("task step saw", "a tool call has returned; what the control file said"),
            "tool.issue": ("call task attempt step pid child", "a tool call is about to be made"),
            "tool.return": ("call changed", "it returned, having changed these files"),
            "checkpoint": ("task step", "a wip commit was made"),
            "misbehaves": ("task name", "a scripted misbehaviour sets in (never read by a check)"),
            "shim": (
                "name how task argv_unknown",
                "a simulated agent CLI was called, and found its task in this way (never read by a check)",
            ),
            "worker.note": ("task", "anything else worth telling (never read by a check)"),
        },
    ),
    **_kinds(
        "tools",
        {
            "tool.start": ("call pid", "the tool itself says that it runs"),
            "tool.end": ("call pid", "the tool itself says that it is done"),
        },
    ),
    **_kinds(
        "provider",
        {
            "provider.begin": ("port", "the model endpoint listens"),
            "model.open": ("req run task tokens_in marks", "a model request arrived"),
            "model.chunk": ("req tokens", "tokens were streamed"),
            "model.close": ("req tokens_out outcome", "it ended: done, hangup or error"),
            "provider.end": ("requests", "the endpoint's last event"),
        },
    ),
    **_kinds(
        "origin",
        {
            "ref.update": (
                "ref old new outcome pusher",
                "the origin was asked to move a ref: attempted, accepted, refused",
            ),
        },
    ),
}
