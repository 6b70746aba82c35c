"""Values as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping


def finite(value: object) -> object:
    """JSON knows no NaN and no infinity: they become null."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
