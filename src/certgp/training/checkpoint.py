"""A training run on disk: what it takes to go on after an interruption as if there had been none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from certgp.data.tables import replacing
from certgp.errors import CheckpointError

_FORMAT = "certgp-checkpoint"


@dataclass(frozen=True)
class Checkpoint:
    """A file for one training run; its ``fingerprint`` of data and settings keeps other runs from going on from it."""

    path: Path
    fingerprint: str

    def write(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Replace the file; it is whole at every moment."""
        header = {"format": _FORMAT, "fingerprint": self.fingerprint, "values": json.dumps(values)}
        contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
        with replacing(self.path) as temporary:
            temporary.write_bytes(save(contiguous, metadata=header))

    def read(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and values of the last ``write``, or None where there was none."""
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                header = file.metadata() or {}
                tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a dict)
        except (SafetensorError, OSError, ValueError) as error:
            raise CheckpointError(
                f"checkpoint {self.path} cannot be read ({error}); delete it to start anew, or name another file"
            ) from error
        if header.get("format") != _FORMAT or header.get("fingerprint") != self.fingerprint:
            raise CheckpointError(
                f"checkpoint {self.path} belongs to another fit (other data, parameters or random_state) or is no "
                "checkpoint; delete it to start anew, or name another file"
            )
        return tensors, json.loads(header["values"])

    def remove(self) -> None:
        """The run is done; its file is not needed any more."""
        self.path.unlink(missing_ok=True)
