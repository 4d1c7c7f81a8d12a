"""Ablations: one config trained in many variants, each in a process of its own, and their report.

`axes` and `plan` turn words into runs, `check` looks at all of them before the first one starts,
`training` trains what is not finished, `results` reads what they left, `paper` knows the published
number of the same variant, `report` writes it all down. ``search-r1 ablate`` is `command`.
"""
