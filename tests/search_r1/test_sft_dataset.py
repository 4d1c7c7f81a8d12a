"""configs/sft.yaml over verl's schema; with torch (slow), the rows that verl's SFT trainer gets."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from search_r1.config import config_folder, shipped_configs
from search_r1.config_types import leaves

GIVEN = ["model.path=model", "data.train_files=sft.parquet", "trainer.experiment_name=sft"]
CONFIG = {"pad_mode": "no_padding", "max_length": 4}
ROWS = [
    {"input_ids": [7, 8, 9], "mask": [0, 1, 1]},
    {"input_ids": [7, 6, 5, 4], "mask": [0, 1, 0, 1]},
]


VERLS = Path(next(iter(find_spec("verl").submodule_search_locations))) / "trainer" / "config"


def composed(folder: Path, name: str, *overrides: str) -> Any:
    with initialize_config_dir(str(folder), version_base=None):
        return compose(name, [f"hydra.searchpath=[file://{VERLS}]", *overrides])


def test_every_setting_is_one_that_verl_knows() -> None:
    ours = OmegaConf.to_container(OmegaConf.load(config_folder() / "sft.yaml"))
    assert isinstance(ours, dict)
    del ours["defaults"]
    known = {
        name for name, _ in leaves(OmegaConf.to_container(composed(VERLS, "sft_trainer_engine")))
    }
    assert {name for name, _ in leaves(ours)} <= known


def test_it_composes_with_three_words() -> None:
    config = composed(config_folder(), "sft", *GIVEN)
    assert config.trainer.default_local_dir == "runs/sft/checkpoints"
    assert config.data.custom_cls.path == "pkg://search_r1.sft_dataset"
    assert config.data.pad_mode == "no_padding"
    assert (config.engine.strategy, config.trainer.n_gpus_per_node) == ("fsdp2", 8)


def test_it_is_no_config_of_search_r1_train() -> None:
    assert "sft" not in shipped_configs()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "sft.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    return str(path)


@pytest.mark.slow
def test_rows_come_as_they_are_with_the_mask_on_the_same_tokens(file: str) -> None:
    from search_r1.sft_dataset import DemonstrationDataset

    rows = DemonstrationDataset(parquet_files=[file, file], config=CONFIG, tokenizer=None)
    assert len(rows) == 4
    assert {name: values.tolist() for name, values in rows[1].items()} == {
        "input_ids": [7, 6, 5, 4],
        "position_ids": [0, 1, 2, 3],
        "loss_mask": [0, 1, 0, 1],
    }
    assert len(DemonstrationDataset(parquet_files=file, config=CONFIG, max_samples=1)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_length": 3}, r"sft\.parquet: row 1: 4 tokens, more than data\.max_length=3"),
        ({"pad_mode": "right"}, "data.pad_mode is 'right'; set it to no_padding"),
    ],
)
def test_what_does_not_fit_is_refused(file: str, change: dict[str, Any], message: str) -> None:
    from search_r1.sft_dataset import DemonstrationDataset

    with pytest.raises(ValueError, match=message):
        DemonstrationDataset(parquet_files=file, config=CONFIG | change)
