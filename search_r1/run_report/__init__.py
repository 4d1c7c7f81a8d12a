"""One HTML page about one or several runs: curves, validations, failures, trajectories.

`runs` reads a run's folder, `failures` says why a trajectory is wrong, `plots`, `tables` and
`trajectories` shape what the page shows, `page` renders it. ``search-r1 report`` is `command`.
"""
