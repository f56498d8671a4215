"""The six rows of the rubric, in the contract's order. All are always there: nothing removes one."""

from scoring.rows import (
    direct_pushes,
    dirty_worktrees,
    duplicate_workers,
    orphans,
    time_to_quiet,
    tokens_after_abort,
)
from scoring.rows.measure import RowCheck

ROWS: dict[str, RowCheck] = {
    module.CHECK.id: module.CHECK
    for module in (
        time_to_quiet,
        dirty_worktrees,
        duplicate_workers,
        direct_pushes,
        orphans,
        tokens_after_abort,
    )
}
