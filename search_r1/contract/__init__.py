"""The rules of the retrieval API, each tried on a running server: JSON over HTTP, nothing else.

Command: ``search-r1 doctor --retriever URL``. Some rules are needs, without which a run goes
wrong; the others are wishes, and a server that breaks them can be used.
"""
