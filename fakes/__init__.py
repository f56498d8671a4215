"""The world of instrumented fakes: simulated workers, tools, model provider, git origin, coordinators.

Nothing here knows a verdict. Programs that run inside a subject's tree use the standard library alone, because their
start-up time is part of what a drill measures. Nothing is imported here, for the same reason.
"""
