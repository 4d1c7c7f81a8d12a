"""Command line of the server: `python -m retrieval_server --index DIR --port 8000`.

Every setting is a flag (`--help` lists them) or an environment variable RETRIEVER_NAME.
"""

import logging
import sys

from pydantic import ValidationError
from pydantic_settings import CliApp

from retrieval_server.engines.fit import check_fit
from retrieval_server.logs import configure_logs
from retrieval_server.openmp import share_cores
from retrieval_server.settings import Settings


def main(arguments: list[str] | None = None) -> int:
    """Read the settings, serve, and return the exit code (`retrieval_server.exits.Exit`)."""
    configure_logs("text")
    try:
        settings = CliApp.run(Settings, sys.argv[1:] if arguments is None else arguments)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            field = ".".join(str(part) for part in item["loc"]).replace("_", "-")
            reason = item["msg"].removeprefix("Value error, ")
            logging.error("%s: %s", f"--{field}" if field else "settings", reason)
        return 2
    configure_logs(settings.log_format)
    try:
        check_fit(settings)
    except ValueError as error:
        logging.error("%s", error)
        return 2
    share_cores(settings.threads, settings.workers)
    if settings.workers > 1:
        from retrieval_server.supervisor import supervise

        return supervise(settings)
    # Imported after that, since it loads faiss.
    from retrieval_server.serve import serve

    return serve(settings)


if __name__ == "__main__":
    sys.exit(main())
