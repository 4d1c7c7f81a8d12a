import errno
import os
from pathlib import Path

import pytest

from search_r1.files import atomic_path, fingerprint, require_folder, require_new, require_place


def test_the_target_appears_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file.txt"
    with atomic_path(target) as temporary:
        temporary.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert list(target.parent.iterdir()) == [target]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old")

    def write_half() -> None:
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_large_file_is_told_apart_by_its_end(tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    path.write_bytes(bytes(3 << 20))
    before = fingerprint(tmp_path)
    path.write_bytes(bytes((3 << 20) - 1) + b"x")
    assert fingerprint(tmp_path) != before


def test_an_output_below_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for output in (file / "x.parquet", file / "new" / "x.parquet"):
        with pytest.raises(NotADirectoryError, match=r"output: .*/file is a file, not a folder"):
            require_place(output)
    require_place(file)
    require_place(tmp_path / "new" / "folder" / "x.parquet")


def test_a_file_is_no_folder_for_an_output(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"output: .*/file is a file"):
        require_folder(tmp_path / "file")
    require_folder(tmp_path)
    require_folder(tmp_path / "new" / "folder")


def test_a_new_output_is_not_there_and_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    require_new(tmp_path / "new" / "folder")
    with pytest.raises(FileExistsError, match=r"output: .*/file exists: remove it"):
        require_new(tmp_path / "file")
    with pytest.raises(NotADirectoryError, match=r"output: .*/file is a file"):
        require_new(tmp_path / "file" / "folder")


def test_an_output_in_a_folder_of_others_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write anywhere, so the answer is made.
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError, match="may not be written to; give another output"):
        require_place(tmp_path / "x.parquet")


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path: Path) -> None:
    def fill_the_disk() -> None:
        with atomic_path(tmp_path / "rows.jsonl"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=r"No space left on device: '.*/rows\.jsonl'"):
        fill_the_disk()
