import pytest

from search_r1.ablation.paper import published_method, published_number


def settings(**changes: str) -> dict[str, str]:
    names = {
        "algorithm": "algorithm.adv_estimator",
        "model": "actor_rollout_ref.model.path",
        "n": "actor_rollout_ref.rollout.n",
        "top_k": "search.top_k",
        "mask": "search.mask_retrieved",
    }
    values = {"algorithm": "gae", "model": "Qwen/Qwen2.5-7B", "n": "1", "top_k": "3"}
    values |= {"mask": "True"} | changes
    return {names[name]: value for name, value in values.items()}


@pytest.mark.parametrize(
    ("changes", "em"),
    [
        ({}, 0.431),
        ({"mask": "False"}, 0.343),
        ({"mask": "False", "model": "/models/Qwen2.5-3B/"}, 0.262),
        ({"top_k": "1"}, 0.375),
        ({"top_k": "5"}, 0.400),
        ({"model": "Qwen/Qwen2.5-7B-Instruct"}, 0.385),
        ({"algorithm": "grpo", "n": "5"}, 0.350),
        ({"algorithm": "grpo", "n": "3"}, 0.363),
        ({"algorithm": "grpo", "n": "1"}, 0.410),
    ],
)
def test_a_variant_has_the_papers_number_of_it(changes: dict[str, str], em: float) -> None:
    found = published_number(settings(**changes))
    assert found is not None
    assert found.average_em == em


def test_another_model_stands_beside_the_7b_model_which_is_named() -> None:
    found = published_number(settings(model="runs/smollm2", mask="False"))
    assert found is not None
    assert (found.model, found.average_em) == ("Qwen2.5-7B", 0.343)


@pytest.mark.parametrize(
    "changes", [{"top_k": "2"}, {"top_k": "1", "mask": "False"}, {"algorithm": "rloo"}]
)
def test_what_was_not_published_has_none(changes: dict[str, str]) -> None:
    assert published_number(settings(**changes)) is None


def test_a_config_from_before_the_mask_was_a_setting_has_it() -> None:
    stored = settings()
    del stored["search.mask_retrieved"]
    assert published_method(stored) == "search_r1_ppo"
