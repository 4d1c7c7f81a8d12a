"""Web search engines with an HTTP API: a request and a parse function each, the rest is shared."""
