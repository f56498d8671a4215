"""Listening to standard output for a while: what an adapter prints, and what programs that it calls print.

Both ways are heard, `sys.stdout` and descriptor 1, because a program that an adapter runs knows only the second.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def heard() -> Iterator[Callable[[], str]]:
    """What is printed inside goes nowhere; calling what this yields gives it as text."""
    with tempfile.TemporaryFile() as file:
        real, kept = sys.stdout, os.dup(1)
        with contextlib.suppress(OSError, ValueError):
            real.flush()
        os.dup2(file.fileno(), 1)
        # Not closed at the end: the adapter's thread may still hold it.
        sys.stdout = os.fdopen(os.dup(file.fileno()), "w", buffering=1, encoding="utf-8", errors="replace")

        def text() -> str:
            sys.stdout.flush()
            size = os.fstat(file.fileno()).st_size
            return os.pread(file.fileno(), min(size, 1 << 16), 0).decode(errors="replace")

        try:
            yield text
        finally:
            sys.stdout.flush()
            sys.stdout = real
            os.dup2(kept, 1)
            os.close(kept)
