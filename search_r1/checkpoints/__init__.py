"""Checkpoints that survive whatever ends a run: sealed when whole, found again, never half taken.

`manifest` says what a whole checkpoint consists of, `folders` where checkpoints lie, `recovery`
which one a run resumes from, and `saving` what happens when one cannot be written.
"""
