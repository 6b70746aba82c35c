"""Files from public addresses: resumed where a transfer broke off, compared with their checksum, never half there.

While a transfer runs, FILE.part holds what has come so far and FILE.part.json how the server called that version of the
file (its ETag or date). A later run asks for the rest of the same version; a server that knows no ranges, or whose file
has changed, answers with the whole file and the transfer starts afresh. FILE.sha256 keeps the checksum of what came
first, for files whose checksum was not known before.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO

from certgp.errors import CertgpError
from certgp_paper.datasets.catalogue import RemoteFile

Progress = Callable[[str, int, int | None], None]  # file, bytes so far, bytes in all where the server says
_BLOCK = 1 << 16
_ATTEMPTS = 3
_OK, _PARTIAL, _NO_SUCH_RANGE = 200, 206, 416


class DownloadError(CertgpError):
    """A file could not be fetched, or is not the one that was expected."""


class _BrokenOffError(Exception):
    """The connection ended before the file did; what came is kept."""


def download(
    file: RemoteFile,
    path: Path,
    progress: Progress = lambda name, done, total: None,
    timeout: float = 30.0,
    accept_changed: bool = False,
) -> None:
    """Have ``file`` at ``path``, from the network if it is not there yet.

    ``accept_changed`` takes a file whose checksum is another than expected, and records the new one.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _transfer(file, path, progress, timeout)
        _verify(file, path, _part(path), accept_changed)
        os.replace(_part(path), path)
        _validator_file(path).unlink(missing_ok=True)
    else:
        _verify(file, path, path, accept_changed)


def sha256(path: Path) -> str:
    """Checksum of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def forget(path: Path) -> None:
    """Drop the recorded checksum of a download that turned out to be of no use, so that a better one can come."""
    _record(path).unlink(missing_ok=True)


def _transfer(file: RemoteFile, path: Path, progress: Progress, timeout: float) -> None:
    """Fill the .part file; a connection that breaks off is taken up again as long as it brings something new."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _attempt(file, path, progress, timeout)
        except _BrokenOffError as error:
            if attempt == _ATTEMPTS:
                raise DownloadError(
                    f"the transfer of {file.url} broke off ({error}); what came is kept in {_part(path)}: "
                    "run the same command again to go on from there"
                ) from error
        except urllib.error.HTTPError as error:
            with error:  # it holds the connection
                raise DownloadError(
                    f"{file.url} answers {error.code} {error.reason}; the address may have changed: "
                    f"get the file elsewhere, put it at {path} and run the same command again"
                ) from error
        except (OSError, http.client.HTTPException) as error:
            raise DownloadError(
                f"{file.url} cannot be reached ({getattr(error, 'reason', None) or error}); without a network, "
                f"get the file elsewhere, put it at {path} and run the same command again"
            ) from error
    return None


def _attempt(file: RemoteFile, path: Path, progress: Progress, timeout: float) -> None:
    start, headers = _resumption(file, path)
    request = urllib.request.Request(file.url, headers={"User-Agent": "certgp", **headers})
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != _NO_SUCH_RANGE:
            raise
        error.close()  # the part is longer than the file: it is not a part of it
        _part(path).unlink()
        return _attempt(file, path, progress, timeout)
    with response:
        resumed = response.status == _PARTIAL and _range_start(response) == start
        if response.status == _PARTIAL and not resumed:
            raise DownloadError(
                f"{file.url} sends another part than the one asked for; delete {_part(path)}, try again"
            )
        start = start if resumed else 0
        _keep_validator(file.url, response, path)
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        with _part(path).open("ab" if resumed else "wb") as stream:
            done = _copy(response, stream, start, lambda n: progress(file.name, n, total))
    if total is not None and done < total:
        raise _BrokenOffError(f"after {done:,} of {total:,} bytes")
    return None


def _resumption(file: RemoteFile, path: Path) -> tuple[int, dict[str, str]]:
    """Bytes already there and the headers that ask for the rest, if it is sure to be the rest of the same file."""
    try:
        validator = json.loads(_validator_file(path).read_text())
        start = _part(path).stat().st_size if validator["url"] == file.url else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0, {}
    if not start or not validator.get("version"):
        return 0, {}
    return start, {"Range": f"bytes={start}-", "If-Range": validator["version"]}


def _keep_validator(url: str, response: http.client.HTTPResponse, path: Path) -> None:
    etag = response.headers.get("ETag", "")
    strong = etag if not etag.startswith("W/") else ""  # a weak one promises no equal bytes
    content = {"url": url, "version": strong or response.headers.get("Last-Modified")}
    _validator_file(path).write_text(json.dumps(content))


def _copy(response: IO[bytes], stream: IO[bytes], start: int, progress: Callable[[int], None]) -> int:
    """Copy block by block; returns how many bytes the file has now."""
    done = start
    while True:
        try:
            block = response.read(_BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise _BrokenOffError(f"after {done:,} bytes: {error or type(error).__name__}") from error
        if not block:
            return done
        stream.write(block)
        done += len(block)
        progress(done)


def _range_start(response: http.client.HTTPResponse) -> int | None:
    """7 of ``Content-Range: bytes 7-99/100``."""
    unit, _, rest = response.headers.get("Content-Range", "").partition(" ")
    first = rest.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdigit() else None


def _verify(file: RemoteFile, path: Path, content: Path, accept_changed: bool) -> None:
    """Compare ``content``, which is or will be ``path``, with the expected or recorded checksum."""
    record = _record(path)
    found = sha256(content)
    if found == file.sha256:  # what the catalogue expects, whatever was accepted before
        record.unlink(missing_ok=True)
        return
    recorded = next(iter(record.read_text().split()), None) if record.exists() else None
    expected = recorded or file.sha256
    if expected not in (None, found) and not accept_changed:
        if content != path:
            content.unlink()
        raise DownloadError(
            f"{path.name} from {file.url} has the SHA-256 {found} where {expected} was expected: the source has "
            f"changed it or it was damaged; {'delete ' + str(path) + ' and ' if content == path else ''}try again, "
            "or take it as it is with --accept-changed"
        )
    from certgp.data.tables import (
        replacing,  # imported here: it brings libraries that listing data sets need not wait for
    )

    with replacing(record) as temporary:
        temporary.write_text(f"{found}  {path.name}\n")


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _validator_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.part.json")
