"""What looks at the world while a drill runs: live events, worktrees and refs, the subject's claims.

Observers append to the history and never decide anything; where a decision needs to be live (is the fleet at work, is
it quiet), it only steers when to look next.
"""
