"""One server on an address, even before it listens."""

import pytest

from retrieval_server.listener import bind, claim


@pytest.mark.parametrize("shared", [True, False])
def test_a_second_server_is_refused_while_the_first_loads(shared: bool) -> None:
    with bind("127.0.0.1", 0, shared=True) as holder, claim(holder):
        port = holder.getsockname()[1]
        # The kernel alone would let it in, since nobody listens yet.
        second = bind("127.0.0.1", port, shared=shared)
        with second, pytest.raises(OSError, match="in use"):
            claim(second)


def test_an_ended_server_leaves_the_address_free() -> None:
    with bind("127.0.0.1", 0, shared=True) as holder:
        claim(holder).close()
        claim(holder).close()
