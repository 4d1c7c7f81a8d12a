"""``python -m search_r1`` is the command ``search-r1``."""

from search_r1.cli import app

app(prog_name="search-r1")
