"""What the guard relies on in verl, read from its source: an upgrade that moves it fails here."""

import ast
import inspect
from importlib.util import find_spec
from pathlib import Path

import pytest

from search_r1.stability.guard import StabilityGuard
from search_r1.stability.keeper import CheckpointKeeper


def verl_source(path: str) -> str:
    spec = find_spec("verl")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / path).read_text()


@pytest.fixture(scope="module")
def trainer() -> dict[str, list[str]]:
    """The methods of verl's trainer with the names of their parameters."""
    tree = ast.parse(verl_source("trainer/ppo/v1/trainer_base.py"))
    [found] = [node for node in tree.body if getattr(node, "name", "") == "PPOTrainer"]
    assert isinstance(found, ast.ClassDef)
    return {
        node.name: [argument.arg for argument in node.args.args]
        for node in found.body
        if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize("mixin", [StabilityGuard, CheckpointKeeper])
def test_every_method_in_front_of_verls_has_its_parameters(
    trainer: dict[str, list[str]], mixin: type
) -> None:
    shared = {name: value for name, value in vars(mixin).items() if name in trainer}
    assert len(shared) >= 4
    for name, method in shared.items():
        parameters = inspect.signature(method).parameters.values()
        ours = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        takes_more = any(one.kind in {one.VAR_POSITIONAL, one.VAR_KEYWORD} for one in parameters)
        assert ours == trainer[name][: len(ours)]
        assert takes_more or len(ours) == len(trainer[name])


@pytest.mark.parametrize(
    ("path", "line"),
    [
        # A checkpoint is called whole last, and its step's weights are saved before validation.
        ("trainer/ppo/v1/trainer_base.py", '"latest_checkpointed_iteration.txt"'),
        ("trainer/ppo/v1/trainer_base.py", "self.logger.log(data=metrics, step=self.global_steps)"),
        # Why there is no need to guard the optimizer against a gradient that is not finite.
        ("workers/engine/fsdp/transformer_impl.py", "if not torch.isfinite(grad_norm):"),
        # Why a resumed run is told its rate: what is loaded holds the old one.
        (
            "utils/checkpoint/fsdp_checkpoint_manager.py",
            "self.lr_scheduler.load_state_dict(lr_scheduler_state_dict)",
        ),
        # How it is told.
        ("single_controller/base/worker.py", "def execute_with_func_generator(self, func, *args"),
        ("single_controller/ray/base.py", 'method_name_with_prefix = key + "_" + method_name'),
        ("single_controller/ray/base.py", "def execute_all_sync(self, method_name: str, *args"),
    ],
)
def test_the_line_that_the_guard_relies_on_is_there(path: str, line: str) -> None:
    assert line in verl_source(path)
