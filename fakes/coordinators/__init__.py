"""Coordinators to drill: the reference one, which keeps the stop contract, and the broken ones, which each
break one clause.

They are subjects: a drill reaches them through the control directory (`mailbox`) alone and believes nothing
they say. Nothing is imported here, because the broken ones are also looked up by programs that never start
one.
"""
