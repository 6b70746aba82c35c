"""Every command has --json."""

from __future__ import annotations

from certgp.cli.completion import describe
from certgp.cli.main import build_parser
from certgp.cli.output import Console


def test_every_command_has_json():
    commands = describe(build_parser(["--help"], Console()))
    lacking = {each.name for each in commands if not any("--json" in option.names for option in each.options)}
    assert lacking <= {"datasets"}  # a group: its commands list, where and fetch have it
