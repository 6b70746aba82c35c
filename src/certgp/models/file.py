"""One file per model: safetensors with a JSON header. No pickle, no training data, nothing executed on loading."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor

from certgp.data.tables import replacing
from certgp.errors import ModelFileError
from certgp.model_header import FORMAT
from certgp.models.format2 import upgrade
from certgp.version import __version__

FORMAT_VERSION = 3
_READABLE = ("2", "3")
Tensors = dict[str, Tensor]


def write_model_file(path: Path, tensors: Tensors, values: dict[str, Any]) -> None:
    """Write tensors and plain values; the file appears whole or not at all."""
    if not path.parent.is_dir():
        raise ModelFileError(f"the directory {path.parent} does not exist; create it first")
    if path.is_dir():
        raise ModelFileError(f"{path} is a directory; give the name of a file, such as {path / 'gp.model'}")
    body = json.dumps(values, allow_nan=True)
    header = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "library_version": __version__,
        "checksum": _checksum(tensors, body),
        "model": body,
    }
    with replacing(path) as temporary:
        temporary.write_bytes(serialise(tensors, metadata=header))


def read_model_file(path: Path) -> tuple[Tensors, dict[str, Any], dict[str, str]]:
    """Tensors, values and header of a model file of this or an earlier format."""
    if not path.is_file():
        raise ModelFileError(f"{path} does not exist or is not a file")
    header, tensors = _read(path)
    if header.get("format") != FORMAT:
        raise ModelFileError(f"{path} is a safetensors file but not a certgp model")
    version = header.get("format_version")
    if version not in _READABLE:
        raise ModelFileError(
            f"{path} has model format {version} (written by certgp {header.get('library_version')}); this certgp "
            f"{__version__} reads formats {', '.join(_READABLE)}. Load it with that version, or fit again"
        )
    if header.get("checksum") != _checksum(tensors, header.get("model", "")):
        raise ModelFileError(f"{path} is damaged: its checksum does not match. Copy or save it again")
    values = json.loads(header["model"])
    if version == "2":
        values = upgrade(values, tensors)
    return tensors, values, header


def _read(path: Path) -> tuple[dict[str, str], Tensors]:
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(
            f"{path} is not a readable model file (damaged, truncated or of another kind): {error}"
        ) from error


def _checksum(tensors: Tensors, body: str) -> str:
    """SHA-256 over the header text and every tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(body.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
