"""The command line as a process of its own: what only a real one shows."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cli_cases import rows, write

COMMAND = [sys.executable, "-W", "error::UserWarning", "-m", "certgp"]


def run(*argv: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, argv)], capture_output=True, text=True, timeout=60, **options)


def test_fit_for_a_reader_that_leaves_then_predict(tmp_path):
    write(tmp_path / "t.csv", rows())
    fit = f"{' '.join(COMMAND)} fit t.csv --target price --rank 10 --out m"
    script = f"{fit} | true; echo ${{PIPESTATUS[0]}}"  # as `| head` does: not an error
    fitted = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (fitted.stdout.strip(), fitted.stderr) == ("0", "")
    predicted = run("predict", "m", "t.csv", "--out", "o.parquet", "--json", cwd=tmp_path)
    assert (predicted.returncode, predicted.stderr) == (0, "")
    assert json.loads(predicted.stdout)["n_rows"] == 80
    assert (tmp_path / "o.parquet").exists()


def test_bad_input_is_one_line_and_code_2(tmp_path):
    failed = run("fit", "gone.csv", "--target", "y", "--out", "m", cwd=tmp_path)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr == "error: gone.csv does not exist; check the path\n"


@pytest.mark.parametrize(("given", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_idle_threads_sleep_unless_the_user_says_otherwise(given, expected):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"OMP_WAIT_POLICY": given} if given else {}
    code = "import os\nfrom certgp.cli.main import main\nmain(['fit'])\nprint(os.environ['OMP_WAIT_POLICY'])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == expected


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"], ["fit"], ["completion", "bash"]])
def test_help_and_usage_errors_import_nothing_heavy(arguments):
    code = (
        "import sys\nfrom certgp.cli.main import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'sklearn', 'scipy', 'pyarrow', 'numpy', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_control_c_on_a_terminal_saves_the_model_so_far(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 6))
    np.savez(tmp_path / "t.npz", X=X, y=np.sin(X).sum(1))
    main_end, other_end = pty.openpty()  # a terminal, so that progress tells us when the fit is under way
    arguments = [*COMMAND, "fit", "t.npz", "--method", "sparse", "--rank", "60", "--out", "m"]
    process = subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=other_end)
    os.close(other_end)
    seen = _read_until(main_end, b"iteration 1/")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    os.close(main_end)
    assert process.returncode == 130
    assert b"starting" in seen
    assert b"Traceback" not in seen
    assert b"m, the best model so far" in out
    assert b"to go on" in out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "t.npz"]


def _read_until(terminal: int, text: bytes, seconds: float = 50.0) -> bytes:
    seen, end = b"", time.monotonic() + seconds
    while text not in seen and time.monotonic() < end:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
    return seen
