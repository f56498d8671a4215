"""The reference coordinator: keeps every clause of the stop contract, and shows how little that takes.

Read `plan` (what a redirect means for each task), then `core`, `watch`, `pause`, `redirect`, `abort` and
`recover` (all decisions, over the port), then `ports` (what the decisions need of the world) and `posix`
(the world).
"""
