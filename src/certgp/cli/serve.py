"""certgp serve: a saved model behind HTTP."""

from __future__ import annotations

import argparse
import os
import socket
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import add_command, positive_int, positive_number, size
from certgp.cli.output import Console
from certgp.errors import ExtrapolationWarning, FarPredictionWarning, InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands

_EXAMPLES = """\
  certgp serve price.model                                 then open http://127.0.0.1:8000 in a browser
  certgp serve price.model --port 9000 --max-rows 1000
  curl http://127.0.0.1:8000/predict -H 'content-type: application/json' -d '{"rows": [[1.5, 2, 0.1]]}'
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    summary = "answer predictions over HTTP: a page to try the model, /predict, /certificate, /model, /health, /docs"
    parser = add_command(commands, "serve", summary, _EXAMPLES, run)
    parser.add_argument("model", metavar="MODEL", type=Path, help="file that 'certgp fit' or save() wrote")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: 127.0.0.1, this machine only; others can ask without a password "
        "where you give another)",
    )
    parser.add_argument(
        "--port", type=_port, default=8000, help="port to listen on; 0 takes a free one (default: 8000)"
    )
    parser.add_argument(
        "--max-rows", metavar="N", type=positive_int, default=10_000, help="per request (default: 10000)"
    )
    parser.add_argument("--max-bytes", metavar="SIZE", type=size, default=16 * 2**20, help="per request (default: 16M)")
    parser.add_argument(
        "--max-seconds",
        metavar="S",
        type=positive_number,
        default=30.0,
        help="for a request to arrive, and for its prediction (default: 30)",
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Check, load, announce, answer until it is stopped."""
    try:
        import uvicorn

        from certgp.serving import Limits, ServedModel, make_app
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("certgp"):
            raise
        raise InvalidInputError(
            f"'certgp serve' needs {error.name}; install it: pip install 'certgp[serve]'"
        ) from error
    from certgp.estimators import load

    listening = _listen(arguments.host, arguments.port)
    with listening:
        served = ServedModel(load(arguments.model), arguments.model.name)
        limits = Limits(arguments.max_rows, arguments.max_bytes, arguments.max_seconds, os.cpu_count() or 1)
        app = make_app(served, limits)
        host, port = listening.getsockname()[:2]
        address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        fields = {"command": "serve", "model": str(arguments.model), "address": address}
        console.result(
            fields, f"serving {arguments.model} at {address} (documentation: {address}/docs); stop with Ctrl-C"
        )
        for category in (ExtrapolationWarning, FarPredictionWarning):
            warnings.simplefilter("ignore", category)  # every answer counts such rows
        settings = uvicorn.Config(app, log_level="warning", timeout_keep_alive=30, server_header=False, lifespan="off")
        uvicorn.Server(settings).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """A socket on this address, before the model is loaded: a taken port is the commonest trouble."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with ExitStack() as closing:
            found = closing.enter_context(socket.socket(family, kind))
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(2_048)  # whoever reads the address may ask at once
            closing.pop_all()  # it stays open
    except OSError as error:
        raise InvalidInputError(
            f"cannot listen on {host}, port {port} ({error.strerror or error}); choose another --host or --port"
        ) from error
    return found


def _port(text: str) -> int:
    """A port, or 0."""
    if not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 65535, found {text!r}")
    return int(text)
