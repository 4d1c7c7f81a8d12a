"""A search engine over HTTP: queries in, passages out, with cross-request micro-batching."""
