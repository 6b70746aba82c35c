"""Downloads against a real server: whole, resumed, broken off, changed, missing, unreachable."""

from __future__ import annotations

import hashlib
import re
import socket

import pytest
from local_server import serving

from certgp_paper.datasets.catalogue import RemoteFile
from certgp_paper.datasets.download import DownloadError, download

CONTENT = bytes(range(256)) * 2000  # 512,000 bytes: several blocks
OTHER = b"another version " * 40_000
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server():
    with serving({"set.zip": CONTENT}) as state:
        yield state


@pytest.fixture
def path(tmp_path):
    return tmp_path / "downloads" / "set.zip"


def remote(server, sha256=SHA):
    return RemoteFile("set.zip", f"{server.url}/set.zip", sha256)


def names(path):
    return sorted(entry.name for entry in path.parent.iterdir())


def test_a_whole_file_arrives_and_leaves_nothing_beside_it(server, path):
    seen = []
    download(remote(server), path, lambda name, done, total: seen.append((name, done, total)))
    assert path.read_bytes() == CONTENT
    assert names(path) == ["set.zip"]
    assert seen[-1] == ("set.zip", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_file_that_is_there_is_not_asked_for_again(server, path):
    download(remote(server), path)
    download(remote(server), path)
    assert server.answers == [200]


def test_a_broken_connection_is_taken_up_where_it_was(server, path):
    server.break_after = [200_000, 100_000]
    download(remote(server), path)
    assert path.read_bytes() == CONTENT
    assert server.answers == [200, 206, 206]
    assert [r.get("Range") for r in server.requests] == [None, "bytes=200000-", "bytes=300000-"]


def test_after_three_breaks_the_part_is_kept_for_the_next_run(server, path):
    server.break_after = [100_000, 100_000, 100_000]
    with pytest.raises(DownloadError, match=r"broke off \(after 300,000 of 512,000 bytes.*run the same command again"):
        download(remote(server), path)
    assert not path.exists()
    assert path.with_name("set.zip.part").read_bytes() == CONTENT[:300_000]
    download(remote(server), path)
    assert path.read_bytes() == CONTENT
    assert server.requests[-1]["Range"] == "bytes=300000-"
    assert names(path) == ["set.zip"]


def test_a_server_without_ranges_starts_afresh(server, path):
    server.ranges = False
    server.break_after = [200_000]
    seen = []
    download(remote(server), path, lambda name, done, total: seen.append((done, total)))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert path.read_bytes() == CONTENT
    assert server.answers == [200, 200]


def test_a_file_that_changed_in_between_starts_afresh(server, path):
    server.break_after = [100_000] * 3
    with pytest.raises(DownloadError, match="broke off"):
        download(remote(server), path)
    server.files["set.zip"], server.etag = OTHER, '"two"'
    download(remote(server, hashlib.sha256(OTHER).hexdigest()), path)
    assert path.read_bytes() == OTHER


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_version_of_the_file_nothing_is_resumed(server, path, etag):
    server.etag, server.break_after = etag, [200_000]
    download(remote(server), path)
    assert path.read_bytes() == CONTENT
    assert "Range" not in server.requests[-1]


def test_a_part_of_another_address_or_longer_than_the_file_is_thrown_away(server, path):
    path.parent.mkdir()
    part, version = path.with_name("set.zip.part"), path.with_name("set.zip.part.json")
    part.write_bytes(b"x" * (len(CONTENT) + 5))
    version.write_text(f'{{"url": "{server.url}/set.zip", "version": "\\"one\\""}}')
    download(remote(server), path)
    assert server.answers == [416, 200]
    path.unlink()
    part.write_bytes(b"x" * 10)
    version.write_text('{"url": "http://elsewhere/set.zip", "version": "\\"one\\""}')
    download(remote(server), path)
    assert path.read_bytes() == CONTENT


def test_a_server_that_sends_another_range_is_refused(server, path):
    server.range_offset, server.break_after = 7, [200_000]
    with pytest.raises(DownloadError, match="sends another part than the one asked for"):
        download(remote(server), path)


def test_a_missing_file_names_the_address_and_the_place(server, path):
    with pytest.raises(DownloadError, match=r"gone\.zip answers 404 Not Found.*put it at .*set\.zip"):
        download(RemoteFile("set.zip", f"{server.url}/gone.zip"), path)
    assert names(path) == []


def test_without_a_network_the_message_says_where_to_put_the_file(path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/set.zip"
        with pytest.raises(DownloadError, match=re.escape(url) + r" cannot be reached.*put it at .*set\.zip"):
            download(RemoteFile("set.zip", url), path)


def test_a_server_that_never_answers_is_given_up(path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/set.zip"
        with pytest.raises(DownloadError, match=r"cannot be reached .*timed out"):
            download(RemoteFile("set.zip", url), path, timeout=0.1)


def test_a_wrong_checksum_keeps_nothing(server, path):
    with pytest.raises(DownloadError, match=f"has the SHA-256 {SHA} where {'0' * 64} was expected"):
        download(remote(server, "0" * 64), path)
    assert "set.zip" not in names(path)
    assert "set.zip.part" not in names(path)


def test_a_changed_file_can_be_accepted_and_is_then_the_expected_one(server, path):
    download(remote(server, "0" * 64), path, accept_changed=True)
    assert path.with_name("set.zip.sha256").read_text() == f"{SHA}  set.zip\n"
    download(remote(server, "0" * 64), path)
    path.write_bytes(OTHER)
    with pytest.raises(DownloadError, match=rf"where {SHA} was expected.*delete .*set\.zip and try again"):
        download(remote(server, "0" * 64), path)


def test_an_unknown_checksum_is_recorded_and_compared_later(server, path):
    download(remote(server, None), path)
    assert path.with_name("set.zip.sha256").read_text().split()[0] == SHA
    path.unlink()
    server.files["set.zip"] = OTHER
    with pytest.raises(DownloadError, match=f"where {SHA} was expected"):
        download(remote(server, None), path)
    assert not path.exists()


def test_a_file_put_there_by_hand_is_checked_too(server, path):
    path.parent.mkdir()
    path.write_bytes(b"a web page that says sorry")
    with pytest.raises(DownloadError, match="SHA-256"):
        download(remote(server), path)
    assert path.exists()  # it is the user's
    assert server.requests == []
