"""The command itself: it says where it listens, answers at once, ends by Ctrl-C, and refuses what cannot work."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys

import pytest
from running import Client

from certgp.cli.main import main


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "price.model"
    fitted.save(path)
    return path


def test_it_answers_as_soon_as_it_has_said_where_and_ends_by_ctrl_c(saved):
    command = [sys.executable, "-m", "certgp", "serve", str(saved), "--port", "0", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = json.loads(server.stdout.readline())["address"]
        assert address.startswith("http://127.0.0.1:")
        client = Client(int(address.rpartition(":")[2]))
        assert client.get("/health").json()["model"] == "price.model"
        assert client.predict({"rows": [[99.0, 0.0, 0.0]]}).json()["n_outside"] == 1
        server.send_signal(signal.SIGINT)
        _, complaints = server.communicate(timeout=60)
    finally:
        server.kill()
        server.wait()
    assert server.returncode == 130
    assert complaints.strip() == "interrupted"


def test_a_taken_port_a_missing_model_and_a_wrong_port_are_refused(saved, tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", str(saved), "--port", str(taken.getsockname()[1])]) == 2
    assert "choose another --host or --port" in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "none.model"), "--port", "0"]) == 2
    assert "none.model" in capsys.readouterr().err
    assert main(["serve", str(saved), "--port", "99999"]) == 2
    assert "from 0 to 65535" in capsys.readouterr().err
