"""Requests made from the OpenAPI document of `certgp serve`, right ones and wrong ones: no answer may be a 5xx.

make fuzz, or: python benchmarks/fuzz.py .peers/fuzz/bin/schemathesis [--examples 500]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from serving import fit_model, start_server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("schemathesis", type=Path, help="the program")
    parser.add_argument("--examples", type=int, default=500, help="requests per operation")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "fuzzed.model"
        fit_model(model)
        server, host, port = start_server(model)
        command = [str(arguments.schemathesis.absolute()), "run", f"http://{host}:{port}/openapi.json"]
        options = ["--checks", "all", "--max-examples", str(arguments.examples), "--seed", "1", "--no-color"]
        try:
            outcome = subprocess.run([*command, *options, "--continue-on-failure"], cwd=folder, check=False)
            alive = server.poll() is None
        finally:
            server.terminate()
            server.wait()
    print("the server lived on" if alive else "the server died")
    return outcome.returncode or int(not alive)


if __name__ == "__main__":
    sys.exit(main())
