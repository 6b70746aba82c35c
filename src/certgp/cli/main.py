"""Entry point: parse the command line, run one command, turn errors into one line and an exit code.

Exit codes: 0 success, 1 an error of the program itself, which keeps its traceback, to be reported, 2 bad input or a
file that cannot be used, 3 an error bound above ``certify --max-error``, 130 interrupted (a fit has then saved the best
model so far). torch and scikit-learn are imported by the commands only. Other packages add commands of their own
(``plugins``).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from certgp import __version__
from certgp.cli import certify, completion, demo, export, fit, predict, rank, report, serve
from certgp.cli.arguments import OneLineParser
from certgp.cli.interrupts import INTERRUPTED
from certgp.cli.output import Console
from certgp.cli.plugins import add_plugins, refuse_missing_plugin
from certgp.cli.words import in_cli_words
from certgp.errors import CertgpError, TableProblemsError

_EXAMPLES = """\
examples:
  certgp demo                                                     see it work on a map of rain
  certgp fit train.csv --target price --out price.model           learn from a table
  certgp fit sales.csv --target price --sep ';' --decimal , --missing impute --log-target --out price.model
  certgp fit 'parts/*.parquet' --target y --rank 300 --out y.model --test-fraction 0.1
  certgp predict price.model new.csv --out predictions.csv        mean, std, lower, upper per row
  certgp certify price.model new.csv                              proven distance to the exact GP
  certgp report price.model train.csv --out report.html           one page: scores, calibration, inputs, proof
  certgp serve price.model                                        predictions over HTTP, with a page to try it
  certgp export price.model --onnx price.onnx                     mean and std for programs without certgp
  certgp rank train.csv --target price                            how many features the table needs
  certgp completion bash                                          let your shell complete commands and options
  certgp datasets list                                            the benchmark data sets and which are here (*)
  certgp reproduce all --quick                                    the paper's tables and figures, small (*)

(*) with the package certgp-paper; from a checkout: pip install ./paper
'certgp COMMAND --help' explains a command. Exit codes: 0 success, 2 bad input,
3 an error bound above 'certify --max-error', 130 interrupted.
"""


def build_parser(argv: Sequence[str], console: Console) -> argparse.ArgumentParser:
    """The command line; commands of other packages are looked up only where ``argv`` may need them."""
    parser: argparse.ArgumentParser = OneLineParser(
        prog="certgp",
        description="Low-rank Gaussian-process regression: fit a table, predict with calibrated uncertainty.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"certgp {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (fit, predict, certify, report, rank, serve, export, demo, completion):
        command.add_parser(commands)
    wanted = next((argument for argument in argv if not argument.startswith("-")), None)
    if wanted not in commands.choices and argv[:1] != ["--version"]:
        add_plugins(commands, console.notice)
    if wanted not in commands.choices:
        refuse_missing_plugin(wanted)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    console = Console()
    argv = sys.argv[1:] if argv is None else argv
    try:
        arguments = build_parser(argv, console).parse_args(argv)
        arguments.argv = list(argv)
        console = Console(as_json=arguments.json)
        with console.warnings_as_lines():
            return arguments.run(arguments, console) or 0
    except KeyboardInterrupt:
        console.notice("interrupted")
        return INTERRUPTED
    except SystemExit as stop:
        if stop.code == INTERRUPTED:  # a second Ctrl-C
            console.notice("interrupted; nothing was saved")
        raise
    except BrokenPipeError:  # the reader of our output has left, as `head` does: not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except TableProblemsError as error:
        console.problems([in_cli_words(problem) for problem in error.problems])
        return 2
    except (CertgpError, OSError) as error:
        console.notice(f"error: {in_cli_words(str(error))}")
        return 2
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):  # torch's form of a MemoryError
            raise
        console.notice(f"error: not enough memory ({error}); use fewer rows, a lower --rank or another --method")
        return 2
    finally:
        console.status("")  # a traceback starts on a line of its own


if __name__ == "__main__":
    sys.exit(main())
