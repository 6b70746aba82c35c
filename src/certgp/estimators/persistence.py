"""One file per model: safetensors with a JSON header. No pickle, no training data, nothing executed on loading."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import nn

import certgp
from certgp.data.tables import replacing
from certgp.errors import ModelFileError
from certgp.estimators.state import Tensors, build_estimator, dump_estimator

if TYPE_CHECKING:
    from certgp.estimators.base import GPRegressor

FORMAT = "certgp-model"
FORMAT_VERSION = 2


def save(estimator: GPRegressor, path: Path) -> None:
    """Write a fitted estimator; the file appears whole or not at all."""
    if not path.parent.is_dir():
        raise ModelFileError(f"the directory {path.parent} does not exist; create it first")
    if path.is_dir():
        raise ModelFileError(f"{path} is a directory; give the name of a file, such as {path / 'gp.model'}")
    tensors, values = dump_estimator(estimator)
    body = json.dumps(values, allow_nan=True)
    header = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "library_version": certgp.__version__,
        "checksum": _checksum(tensors, body),
        "model": body,
    }
    with replacing(path) as temporary:
        temporary.write_bytes(serialise(tensors, metadata=header))


def load(path: str | Path, network: nn.Module | None = None) -> Any:
    """Read a fitted estimator from a file that ``save`` wrote.

    A deep model with a network of your own keeps its weights in the file but not its code: build the same module again
    and pass it as ``network``; it is copied and the saved weights are put into the copy.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"{path} does not exist or is not a file")
    header, tensors = _read(path)
    if header.get("format") != FORMAT:
        raise ModelFileError(f"{path} is a safetensors file but not a certgp model")
    version = header.get("format_version")
    if version != str(FORMAT_VERSION):
        raise ModelFileError(
            f"{path} has model format {version} (written by certgp {header.get('library_version')}); this certgp "
            f"{certgp.__version__} reads format {FORMAT_VERSION}. Load it with that version, or fit again"
        )
    if header.get("checksum") != _checksum(tensors, header.get("model", "")):
        raise ModelFileError(f"{path} is damaged: its checksum does not match. Copy or save it again")
    try:
        return build_estimator(tensors, json.loads(header["model"]), network)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{path} was written by certgp {header.get('library_version')} and lacks what certgp {certgp.__version__} "
            f"needs ({error!r}); load it with that version, or fit again"
        ) from error


def is_model_file(path: Path) -> bool:
    """Was this file written by ``save``, in any version? Only its header is looked at."""
    try:
        with safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("format") == FORMAT
    except (SafetensorError, OSError, ValueError):
        return False


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
