"""What can go wrong between the harness and its user, in sentences.

A subject that misbehaves is never an error here: it is a result. These are for bad input (exit 2) and for a harness
that cannot do its job (exit 4).
"""


class UsageProblem(Exception):
    """The user gave something that cannot be used; the text names file, key and remedy. Exit status 2."""


class HarnessTrouble(Exception):
    """The harness could not do its own job; the text says what it waited for, what it saw and where to look. Exit 4."""
