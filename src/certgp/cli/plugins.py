"""Commands of other packages: entry points of the group ``certgp.commands``.

An entry point names a module or object with ``add_parser(commands)``, as the commands of this room have it. They are
loaded for ``certgp --help`` and for commands that certgp itself does not have, so they must import quickly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from certgp.cli.arguments import OneLineParser
from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from certgp.cli.arguments import Commands

GROUP = "certgp.commands"
_FROM_A_CHECKOUT = {"reproduce": "certgp-paper", "datasets": "certgp-paper"}  # command -> package


def add_plugins(commands: Commands, notice: Callable[[str], None]) -> None:
    """Add every command that other packages offer. One that fails, or whose name is taken, is left out and named."""
    from importlib.metadata import entry_points  # 20 ms

    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            plugin = point.load()
            offered = OneLineParser().add_subparsers()
            plugin.add_parser(offered)  # on trial: a failure must not leave half a command behind
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            notice(f"warning: {_name(point)} does not work and is left out ({reason}); update or remove that package")
            continue
        taken = sorted(set(offered.choices) & set(commands.choices))
        if taken:
            notice(f"warning: {_name(point)} is left out: there is already a command {', '.join(taken)}")
        else:
            plugin.add_parser(commands)


def refuse_missing_plugin(command: str | None) -> None:
    """Say how to get a command of a package that is not installed."""
    if command in _FROM_A_CHECKOUT:
        raise InvalidInputError(
            f"'certgp {command}' comes with the package {_FROM_A_CHECKOUT[command]}, which is not installed; "
            "install it from a checkout of certgp: pip install ./paper"
        )


def _name(point: EntryPoint) -> str:
    package = "" if point.dist is None else f" of the package {point.dist.name}"
    return f"the command {point.name}{package}"
