"""Single files out of zip and tar archives, without unpacking them."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from certgp.errors import DataFileError

_DAMAGED = (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error)


@dataclass(frozen=True)
class TextFile:
    """A file that can be opened again and again, and its name for messages."""

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]


def plain(path: Path) -> TextFile:
    """A file as it is."""
    return TextFile(str(path), lambda: path.open("rb"))


def zipped(path: Path, member: str) -> TextFile:
    """The file of this name in a zip archive, in whichever of its folders."""

    @contextmanager
    def opened() -> Iterator[IO[bytes]]:
        with (
            _readable(path),
            zipfile.ZipFile(path) as archive,
            archive.open(_found(archive.namelist(), member, path)) as stream,
        ):
            yield stream

    return TextFile(f"{path}: {member}", opened)


def tarred(path: Path, member: str) -> TextFile:
    """The file of this name in a compressed tar archive."""

    @contextmanager
    def opened() -> Iterator[IO[bytes]]:
        with _readable(path), path.open("rb") as file, _tar_member(file, member, path) as stream:
            yield stream

    return TextFile(f"{path}: {member}", opened)


def tarred_in_zip(path: Path, inner: str, member: str) -> TextFile:
    """The file of this name in a tar archive that is itself in a zip archive."""

    @contextmanager
    def opened() -> Iterator[IO[bytes]]:
        with zipped(path, inner).open() as file, _tar_member(file, member, path) as stream:
            yield stream

    return TextFile(f"{path}: {inner}: {member}", opened)


@contextmanager
def _tar_member(file: IO[bytes], member: str, path: Path) -> Iterator[IO[bytes]]:
    seen = []
    with tarfile.open(fileobj=file, mode="r|*") as archive:  # a stream: nothing is unpacked, nothing is sought
        for entry in archive:
            seen.append(entry.name)
            if entry.isfile() and PurePosixPath(entry.name).name == member:
                stream = archive.extractfile(entry)
                assert stream is not None  # a regular file
                yield stream
                return
    _found(seen, member, path)


def _found(names: Sequence[str], member: str, path: Path) -> str:
    hits = [name for name in names if PurePosixPath(name).name == member]
    if len(hits) != 1:
        reason = f"has {len(hits)} files named {member}" if hits else f"has no file {member}"
        raise DataFileError(f"{path} {reason}; it holds: {', '.join(names) or 'nothing'}. Download it again")
    return hits[0]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise DataFileError(f"{path} is not a whole archive ({error}); delete it and download it again") from error
