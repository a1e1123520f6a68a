"""Depth from the command to the kernel, as architecture.md promises."""

import sys
from pathlib import Path

import shoal
from shoal import sample
from shoal.pipeline import publishing

HOME = str(Path(shoal.__file__).parent)


def test_from_the_command_to_the_algorithm_few_frames_and_few_modules(tmp_path):
    sample.load().head(200).write_parquet(tmp_path / "people.parquet")
    stacks = []

    def watch(frame, event, _argument):
        if event == "call" and frame.f_code.co_name == "mdav":
            stack = []
            while frame:
                if frame.f_code.co_filename.startswith(HOME):
                    stack.append(frame.f_code.co_filename)
                frame = frame.f_back
            stacks.append(stack)

    sys.setprofile(watch)
    try:
        publishing.protect(
            tmp_path / "people.parquet", sample.folder() / "people.toml", tmp_path / "out"
        )
    finally:
        sys.setprofile(None)

    assert stacks
    # The command line itself adds one frame.
    assert 1 + max(map(len, stacks)) <= 6
    assert 1 + max(len(set(stack)) for stack in stacks) <= 12
