"""certgp completion: what a shell needs to complete commands, options, choices and files."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from certgp.cli.arguments import add_command

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.cli.output import Console

_EXAMPLES = """\
  source <(certgp completion bash)                                  in ~/.bashrc
  certgp completion zsh > ~/.zfunc/_certgp                          a folder of $fpath, before compinit
  certgp completion fish > ~/.config/fish/completions/certgp.fish
"""


@dataclass(frozen=True)
class Option:
    """An option of a command."""

    names: tuple[str, ...]
    words: str  # what it does, in a line
    takes_value: bool
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command and what may follow it."""

    name: str
    words: str
    options: tuple[Option, ...]
    first: tuple[str, ...]  # what its first argument may be, where that is no file


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    summary = "print a script that lets your shell complete certgp's commands and options"
    parser = add_command(commands, "completion", summary, _EXAMPLES, run)
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="your shell")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Print the script for all commands, those of other packages included."""
    from certgp.cli.main import build_parser

    script = SCRIPTS[arguments.shell](describe(build_parser(["--help"], console)))
    console.result({"command": "completion", "shell": arguments.shell, "script": script}, script.rstrip("\n"))


def describe(parser: argparse.ArgumentParser) -> list[Command]:
    """The commands of a parser with their options."""
    (commands,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    summaries = {each.dest: each.help or "" for each in commands._choices_actions}
    return [_command(name, summaries.get(name, ""), own) for name, own in commands.choices.items()]


def _command(name: str, words: str, parser: argparse.ArgumentParser) -> Command:
    options = []
    first: tuple[str, ...] = ()
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        if action.option_strings:
            words_of = _first_sentence(action.help or "")
            options.append(Option(tuple(action.option_strings), words_of, action.nargs != 0, choices))
        elif choices and not first:
            first = choices
    return Command(name, _first_sentence(words), tuple(options), first)


def _first_sentence(text: str) -> str:
    """Short, and without anything that a shell would take for its own."""
    return re.sub(r"[\"'`$\\\[\]{}]", "", re.split(r"[;:(]|, (?=or|which)", text)[0]).strip()


def bash_script(commands: list[Command]) -> str:
    """For bash, without the package bash-completion."""
    cases = []
    for command in commands:
        flags = " ".join(name for option in command.options for name in option.names)
        cases.append(f"    {command.name}) options='{flags}'; first='{' '.join(command.first)}' ;;")
    values = {
        (command.name, name): option
        for command in commands
        for option in command.options
        for name in option.names
        if option.takes_value
    }
    chosen = [f"    '{c} {o}') values='{' '.join(each.choices)}' ;;" for (c, o), each in values.items() if each.choices]
    files = [f"'{c} {o}'" for (c, o), each in values.items() if not each.choices]
    names = " ".join(command.name for command in commands)
    return _BASH.format(names=names, cases="\n".join(cases), chosen="\n".join(chosen), files=" | ".join(files) or "'-'")


_BASH = """\
# bash completion for certgp; written by: certgp completion bash
_certgp() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}"
  local options='' values='' first=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{names} --help --version" -- "$word"))
    return
  fi
  case "$command" in
{cases}
  esac
  case "$command $before" in
{chosen}
    {files}) compopt -o default 2>/dev/null; return ;;
  esac
  if [ -n "$values" ]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
  elif [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [ -n "$first" ] && [ "$COMP_CWORD" -eq 2 ]; then
    COMPREPLY=($(compgen -W "$first" -- "$word"))
  else
    compopt -o default 2>/dev/null
  fi
}}
complete -F _certgp certgp
"""


def zsh_script(commands: list[Command]) -> str:
    """For zsh: a function for compinit."""
    described = "\n".join(f"    '{command.name}:{_plain(command.words)}'" for command in commands)
    cases = []
    for command in commands:
        specs = [_zsh_option(option, name) for option in command.options for name in option.names]
        last = f"'2:what:({' '.join(command.first)})'" if command.first else "'*:file:_files'"
        cases.append(f"    {command.name}) _arguments -S " + " \\\n      ".join([*specs, last]) + " ;;")
    return _ZSH.format(described=described, cases="\n".join(cases))


_ZSH = """\
#compdef certgp
# zsh completion for certgp; written by: certgp completion zsh
_certgp() {{
  local -a commands
  commands=(
{described}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case "$words[2]" in
{cases}
  esac
}}
_certgp "$@"
"""


def _zsh_option(option: Option, name: str) -> str:
    value = ""
    if option.takes_value:
        value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
    return f"'*{name}[{_plain(option.words)}]{value}'"


def fish_script(commands: list[Command]) -> str:
    """For fish."""
    names = " ".join(command.name for command in commands)
    lines = ["# fish completion for certgp; written by: certgp completion fish"]
    for command in commands:
        at = f"-n 'not __fish_seen_subcommand_from {names}'"
        lines.append(f"complete -c certgp -f {at} -a {command.name} -d '{_plain(command.words)}'")
    for command in commands:
        at = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.first:
            lines.append(f"complete -c certgp -f {at} -a '{' '.join(command.first)}'")
        for option in command.options:
            flags = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
            value = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.takes_value else ""
            lines.append(f"complete -c certgp {at} {flags}{value} -d '{_plain(option.words)}'")
    return "\n".join(lines) + "\n"


def _plain(words: str) -> str:
    """Without the separators of zsh's lists."""
    return words.replace(":", "")


SCRIPTS: Mapping[str, Callable[[list[Command]], str]] = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
