"""The checks: each says what it guards, takes the evidence and says in plain words what its author has to change."""

from collections.abc import Callable
from dataclasses import dataclass

from drills.adapters.base import CONTROLS
from drills.conformance.evidence import Evidence, Finding

BLOCKED_MAX_S = 0.5
FIELDS = ("run_id", "task_id", "attempt", "pid", "host", "branch", "worktree", "started_at")

Said = tuple[bool | None, str]
"""Whether it is right (None: not tried), and a sentence; the sentence may be empty when it is right."""


@dataclass(frozen=True)
class Check:
    """One rule for adapters."""

    id: str
    guards: str
    look: Callable[[Evidence], Said]

    def finding(self, evidence: Evidence) -> Finding:
        """What it says; when it is right, what it guards."""
        ok, sentence = self.look(evidence)
        return Finding(self.id, ok, sentence or self.guards)


CHECKS: dict[str, Check] = {}


def _check(name: str, guards: str) -> Callable[[Callable[[Evidence], Said]], None]:
    def register(look: Callable[[Evidence], Said]) -> None:
        CHECKS[name] = Check(name, guards, look)

    return register


def judge(evidence: Evidence) -> tuple[Finding, ...]:
    """All findings, in the order of the checks."""
    return tuple(check.finding(evidence) for check in CHECKS.values())


# What can be told without a fleet


@_check("is-adapter", "it has a name, capabilities and all nine methods")
def _is_adapter(evidence: Evidence) -> Said:
    missing = evidence.shape.missing
    return not missing, f"it has no {', '.join(missing)}; derive it from drills.BaseAdapter" if missing else ""


@_check("async", "every method is async, so that it can be bounded")
def _async(evidence: Evidence) -> Said:
    plain = evidence.shape.blocking
    return not plain, f"not async: {', '.join(plain)}; write `async def`" if plain else ""


@_check("capabilities", "it declares controls and scopes that there are")
def _capabilities(evidence: Evidence) -> Said:
    if "capabilities" in evidence.shape.missing:
        return _not_tried(evidence)
    return not evidence.shape.wrong, "; ".join(evidence.shape.wrong)


@_check("implements", "what it declares it implements")
def _implements(evidence: Evidence) -> Said:
    hollow = evidence.shape.hollow
    names = ", ".join(hollow)
    return not hollow, f"it declares {names} and does not implement it: write it, or leave it out" if hollow else ""


# What a fleet shows


@_check("starts", "its start comes back and puts every worker to work")
def _starts(evidence: Evidence) -> Said:
    failed = [call.wrong for call in evidence.of("starts") if call.wrong]
    failed += [f"start() did not return within {call.bound_s:g} s" for call in evidence.of("starts") if call.timed_out]
    if problems := [*failed, *evidence.idle]:
        return False, "; ".join(problems)
    return (True, "") if evidence.of("starts") else _not_tried(evidence)


@_check("starts-again", "after its close it can be started once more, for another run")
def _starts_again(evidence: Evidence) -> Said:
    again = evidence.of("starts-again")
    if any(call.timed_out for call in again):
        return False, f"a second run of the same adapter: start() did not return within {again[0].bound_s:g} s"
    return _without_fault(evidence, "starts-again")


@_check("answers", "each control that it declares is answered with an Ack")
def _answers(evidence: Evidence) -> Said:
    return _without_fault(evidence, "answers")


@_check("delivered", "it says site.delivered() when a control has reached the coordinator")
def _delivered(evidence: Evidence) -> Said:
    asked = [call for call in evidence.of("answers") if call.state is not None]
    silent = [call.method for call in asked if not call.delivered]
    if silent:
        return False, (
            f"{', '.join(silent)} never called site.delivered(): the time that your adapter needs to hand the control"
            f" over is held against your coordinator"
        )
    return (True, "") if asked else _not_tried(evidence)


@_check("true-states", "the state of an Ack is what the world saw")
def _true_states(evidence: Evidence) -> Said:
    stated = [call for call in evidence.calls if call.state is not None]
    lies = [f"{call.when}: {call.untrue}" for call in stated if call.untrue]
    if lies:
        return False, "; ".join(lies) + '. Answer "accepted" when you only know that it was heard.'
    return (True, "") if stated else _not_tried(evidence)


@_check("twice", "a control that comes twice is answered twice")
def _twice(evidence: Evidence) -> Said:
    return _without_fault(evidence, "twice")


@_check("odd-orders", "a control that makes no sense now is answered, with a refusal for example")
def _odd_orders(evidence: Evidence) -> Said:
    return _without_fault(evidence, "odd-orders")


@_check("in-a-hold", "redirect and abort are answered during a hold")
def _in_a_hold(evidence: Evidence) -> Said:
    return _without_fault(evidence, "in-a-hold")


@_check("overlapping", "an abort is answered while a pause is still under way")
def _overlapping(evidence: Evidence) -> Said:
    return _without_fault(evidence, "overlapping")


@_check("second-abort", "a second abort succeeds and changes nothing")
def _second_abort(evidence: Evidence) -> Said:
    return _without_fault(evidence, "second-abort")


@_check("after-abort", "controls after an abort are answered and start nothing")
def _after_abort(evidence: Evidence) -> Said:
    return _without_fault(evidence, "after-abort")


@_check("coordinator-dies", "it survives its coordinator's death: claims() and restart() go on")
def _coordinator_dies(evidence: Evidence) -> Said:
    return _without_fault(evidence, "coordinator-dies")


@_check("claims", "claims() gives JSON with all manifest fields, before the start and after the end too")
def _claims(evidence: Evidence) -> Said:
    asked = [call for call in evidence.calls if call.method == "claims"]
    problems = [call.wrong for call in asked if call.wrong]
    problems += evidence.not_json
    lacking = sorted({name for line in evidence.manifest for name in FIELDS if name not in line})
    if lacking:
        problems.append(f"manifest lines lack {', '.join(lacking)}; a line has {', '.join(FIELDS)}")
    if problems:
        return False, "; ".join(problems)
    return (True, "") if asked else _not_tried(evidence)


@_check("bounded", "no call hangs: each comes back within its bound")
def _bounded(evidence: Evidence) -> Said:
    hung = [call for call in evidence.calls if call.timed_out]
    told = [f"{call.when}: {call.method}() did not return within {call.bound_s:g} s" for call in hung]
    return (not told, "; ".join(told)) if evidence.calls else _not_tried(evidence)


@_check("awaits", "it awaits and never blocks its event loop")
def _awaits(evidence: Evidence) -> Said:
    slow = [call for call in evidence.calls if call.blocked_s > BLOCKED_MAX_S]
    told = [f"{call.when}: {call.method}() blocked the event loop for {call.blocked_s:.1f} s" for call in slow]
    if told:
        return False, "; ".join(
            told
        ) + ". Await instead, or use asyncio.to_thread: an abort must get through meanwhile."
    return (True, "") if evidence.calls else _not_tried(evidence)


@_check("leaves-nothing", "nothing that it started is left after its close")
def _leaves_nothing(evidence: Evidence) -> Said:
    closed = any(call.method == "close" for call in evidence.calls)
    return (not evidence.left, "; ".join(evidence.left)) if closed else _not_tried(evidence)


@_check("no-stdout", "it prints nothing to standard output")
def _no_stdout(evidence: Evidence) -> Said:
    if not evidence.printed:
        return (True, "") if evidence.calls else _not_tried(evidence)
    first = evidence.printed.strip().splitlines()[:1]
    return False, f"it prints to standard output ({first[0][:80] if first else ''!r}); use logging or stderr"


@_check("process", "it does not end the process that it runs in")
def _process(evidence: Evidence) -> Said:
    # Whoever can ask has survived; `drills.conformance.own_process` says so of those that have not.
    return (True, "") if evidence.calls else _not_tried(evidence)


def _without_fault(evidence: Evidence, kind: str) -> Said:
    """Right when all calls of a kind came back as they have to; what hung is told by `bounded`."""
    calls = evidence.of(kind)
    faults = [call.wrong for call in calls if call.wrong]
    if faults:
        return False, "; ".join(faults)
    if any(call.timed_out for call in calls):
        return None, "not tried to the end: a call of it hung"
    return (True, "") if calls else _not_tried(evidence)


def _not_tried(evidence: Evidence) -> Said:
    shape = evidence.shape
    if shape.missing or shape.wrong:
        return None, "not tried: it is no adapter yet"
    starts = evidence.of("starts")
    if evidence.idle or any(call.error or call.timed_out for call in starts):
        return None, "not tried: it did not start"
    if any(call.timed_out and call.blocked_s > BLOCKED_MAX_S for call in evidence.calls):
        return None, "not tried: a call before it never gave its thread back"
    lacking = [name for name in CONTROLS if name not in shape.capabilities.controls]
    return None, f"not tried{': it declares no ' + ', '.join(lacking) if lacking else ''}"
