"""Meaning: the event vocabulary, the history, the rubric, every check and the scorecard.

Everything below this package is a pure function of its arguments: no clock, no process, no network, no
global state. The one exception is `scoring.journal`, the writer that programs inside a subject's tree use,
which is here so that the place that writes an event and the place that reads it share one definition.

Nothing is imported here on purpose: workers import `scoring.journal` and must start in about 20 ms.
"""
