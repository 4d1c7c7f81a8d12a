from typing import Any

import pytest
from omegaconf import OmegaConf

from search_r1.config import config_folder
from search_r1.stability.detector import Action
from search_r1.stability.settings import AlarmSettings, alarm_settings


def test_the_base_config_repeats_the_defaults_of_the_code() -> None:
    base = OmegaConf.load(config_folder() / "base.yaml")
    assert set(base.alarms) == {"rate_factor", "max_rollbacks", "max_skipped"} | set(
        AlarmSettings().detectors
    )
    assert alarm_settings(base) == AlarmSettings()


def test_a_config_older_than_the_section_has_the_defaults() -> None:
    assert alarm_settings(OmegaConf.create({"search": {}})) == AlarmSettings()


def test_what_is_left_out_keeps_its_default() -> None:
    settings = AlarmSettings.from_mapping({"repetition": {"action": "stop"}, "max_rollbacks": 0})
    assert settings.detectors["repetition"].action is Action.STOP
    assert settings.detectors["repetition"].threshold == 0.3
    assert [one.name for one in settings.those_that(Action.STOP)] == ["repetition"]
    assert settings.max_rollbacks == 0


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"entropie": {}}, r"unknown settings alarms\.entropie; known are .*entropy_collapse"),
        ({"repetition": {"treshold": 1}}, r"alarms\.repetition\.treshold; known are action"),
        ({"repetition": "stop"}, r"alarms\.repetition must be a section, .*\{action: stop\}"),
        ({"repetition": {"action": "halt"}}, r"alarms\.repetition\.action is 'halt', not one of"),
        ({"repetition": {"threshold": "low"}}, r"alarms\.repetition\.threshold must be a number"),
        ({"repetition": {"threshold": float("nan")}}, r"repetition\.threshold must be a number"),
        ({"repetition": {"window": 0}}, r"alarms\.repetition\.window must be at least 1, not 0"),
        ({"repetition": {"patience": 1.5}}, r"repetition\.patience must be a whole number"),
        ({"rate_factor": 1}, r"alarms\.rate_factor must be in \(0, 1\), not 1"),
        ({"max_rollbacks": -1}, r"alarms\.max_rollbacks must be at least 0"),
        ({"max_skipped": True}, r"alarms\.max_skipped must be a whole number, not True"),
    ],
)
def test_a_bad_setting_names_its_field(section: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        AlarmSettings.from_mapping(section)
