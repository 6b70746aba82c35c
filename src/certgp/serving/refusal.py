"""How a request is refused: all that is wrong with it at once, by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from certgp.errors import CertgpError

_SHOWN = 3  # problems told of one request


class RefusedRequestError(CertgpError):
    """A request that cannot be answered: status, what is wrong, and the field it is about."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.field = status, field


def refuse_all(problems: Mapping[str, str]) -> None:
    """Refuse a request for what is wrong with its fields, if anything is."""
    if problems:
        raise RefusedRequestError(422, join_problems(list(problems.values())), next(iter(problems)))


def join_problems(problems: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" (and {len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
    return "; ".join(problems[:_SHOWN]) + more
