"""The fake model provider: a metered endpoint that streams as slowly as it is asked to.

Whatever the subject believes to have spent, this is where it shows. A service of the harness, outside the
run.
"""
