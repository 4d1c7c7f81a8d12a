"""The paper's whole table in one command: `search-r1 eval --suite paper`."""
