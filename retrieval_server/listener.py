"""The socket that the server listens on."""

import errno
import socket

from retrieval_server.settings import Settings

_BACKLOG = 2048


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a socket for the address, which nobody else may have.

    Args:
        host: Name or number; IPv6 when it has a colon.
        port: 0 picks one.
        shared: Whether the user's other processes may have it too, each with a socket of its own:
            the kernel spreads the connections over those that listen. This one does not yet.

    Raises:
        OSError: The address is in use, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A port that connections of an ended server still linger on is free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        if not shared:
            listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def claim(listener: socket.socket) -> socket.socket:
    """Make this the only server on the address, even while nobody listens on it yet.

    Sockets that may be shared, and those that do not listen, do not keep another server away: it
    could bind as well until the first has loaded. So each also holds a name, which the kernel gives
    back however the process ends.

    Returns:
        What holds the name while it is open.

    Raises:
        OSError: Another server has it.
    """
    host, port = listener.getsockname()[:2]
    name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux's abstract names belong to the network namespace, as ports do.
        name.bind(f"\0retrieval-server {host}:{port}")
    except OSError:
        name.close()
        raise
    return name


def address_problem(settings: Settings, error: OSError) -> str:
    """Say in one line why the address cannot be had, and what to do."""
    where = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use: end the server that holds it, or choose another --port"
    return f"cannot listen on {where}: {error.strerror or error}"


def url_of(listener: socket.socket) -> str:
    """The address of a bound socket, as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
