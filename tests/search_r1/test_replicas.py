from search_r1.replicas import Replicas


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def turns(replicas: Replicas, count: int) -> str:
    return "".join(replicas.choose() for _ in range(count))


def test_all_take_turns() -> None:
    assert turns(Replicas("abc", 10), 7) == "abcabca"


def test_one_that_failed_rests_and_comes_back() -> None:
    clock = Clock()
    replicas = Replicas("abc", 10, clock)
    assert replicas.choose() == "a"
    replicas.let_rest("a", 0)
    assert turns(replicas, 4) == "bcbc"
    assert not replicas.all_rest
    clock.now += 10
    assert sorted(turns(replicas, 3)) == ["a", "b", "c"]


def test_one_that_asks_for_time_gets_it() -> None:
    clock = Clock()
    replicas = Replicas("ab", 10, clock)
    replicas.let_rest("a", 60)
    clock.now += 59
    assert turns(replicas, 2) == "bb"


def test_when_all_rest_the_one_whose_rest_ends_first_is_asked() -> None:
    replicas = Replicas("abc", 10, Clock())
    for url, seconds in (("a", 3), ("b", 1), ("c", 2)):
        replicas.let_rest(url, seconds)
    assert replicas.all_rest
    assert replicas.choose() == "b"
    replicas.wake("c")
    assert not replicas.all_rest
    assert replicas.choose() == "c"


def test_an_only_server_is_asked_while_it_rests() -> None:
    replicas = Replicas("a", 10, Clock())
    replicas.let_rest("a", 0)
    assert replicas.choose() == "a"
