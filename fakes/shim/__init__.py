"""The PATH shim: a simulated worker that is called like an agent CLI, so that an unchanged script can be drilled.

A program, not a library: `python -I -S -E fakes/shim/__main__.py NAME ARGUMENTS…`, started by the two-line scripts
that `drills.shims` installs. NAME says whose command line it understands (`arguments`), the task is found by what
surrounds it (`identity`), and then it works like the simulated worker (`turn`), whose loop, tools and misbehaviours
it shares. What it does not share is the control file, because no real CLI knows one, and checkpoints, because no
real CLI makes them by itself.

Until its first event it uses only modules that are built into the interpreter: `os` and `json` together would cost
more than the interpreter's own start.
"""
