"""Tokens: what was spent, when, and how much one tool call's worth is.

Counted at the provider's own meter. Requests of another run (a neighbour's, a bystander's) are not this
run's.
"""

from scoring.timeline import ModelRequest, Timeline


def own_requests(timeline: Timeline) -> list[ModelRequest]:
    """The requests of this run."""
    return [r for r in timeline.requests if r.run in ("", timeline.settings.run)]


def spent_between(requests: list[ModelRequest], begin_t: int, end_t: int) -> int:
    """Tokens of requests issued in (begin_t, end_t], and what was streamed then by requests already open."""
    total = 0
    for request in requests:
        if begin_t < request.t <= end_t:
            total += request.tokens_in + _unstreamed(request, end_t)
        if request.close is None or request.close >= begin_t:
            total += sum(tokens for t, tokens in request.chunks if begin_t < t <= end_t)
    return total


def _unstreamed(request: ModelRequest, end_t: int) -> int:
    """Output that the close names and no chunk showed."""
    if request.close is None or request.close > end_t:
        return 0
    return request.tokens_out - sum(tokens for _, tokens in request.chunks)


def one_call_each(timeline: Timeline, requests: list[ModelRequest], t: int) -> int:
    """One tool call's worth per live worker: for each, its task's largest request that had closed before `t`.

    A task without one counts with the fleet's largest.
    """
    largest: dict[str, int] = {}
    for request in requests:
        if request.close is not None and request.close <= t:
            largest[request.task] = max(largest.get(request.task, 0), request.tokens)
    fleet = max(largest.values(), default=0)
    live = {w.task for w in timeline.workers if w.begin <= t and w.alive(t) and (w.left_t is None or w.left_t > t)}
    return sum(largest.get(task, fleet) for task in live)


def seen(timeline: Timeline, requests: list[ModelRequest]) -> bool:
    """Whether the spending of this run is known at all: nothing metered while tools ran means that it is
    not.
    """
    missing = any("provider" in str(event.data.get("what")) for event in timeline.events("observe.missing"))
    return not missing and bool(timeline.events("provider.begin")) and (bool(requests) or not timeline.calls)
