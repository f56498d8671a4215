"""The keeper: a small program that owns the truth about processes, and its warden.

    driver ──pipes──► warden ──► keeper ──► services (provider, canary, bystanders)
                                        └─► coordinator under test ──► workers, tools, whatever they start

Both are child subreapers, so that nothing below them can leave the tree by forking twice. The keeper starts
the subject, holds a pidfd for every process of the run, writes `proc.*` and `audit` events, and kills all of
it at the end. The warden only waits: if the keeper dies, it kills what the keeper left.

It runs as `python -I -S -E drills/keeper/__main__.py`, with the standard library and `scoring.journal` alone:
the `drills` package is not imported, because start-up and memory of the observer are part of what a drill
disturbs. So modules in here use relative imports only. The driver's side is `drills.keeper_client`.
"""
