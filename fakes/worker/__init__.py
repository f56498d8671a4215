"""The simulated worker: an agent's process as a coordinator sees it, with tools, checkpoints and a model.

A program, not a library: `python -I -S -E fakes/worker/__main__.py --run RUN --task TASK`, started in its
worktree. Standard library only, and of that only what starts quickly: sixteen workers that take 50 ms each to
start would be a second of two cores, and a drill measures fractions of that. So records here are plain
classes with `__slots__` (`dataclasses` alone costs 8 CPU ms), and sockets and children are used without the
comfortable modules.
"""
