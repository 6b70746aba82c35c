"""For ``make docs``: the constructors of estimators, whose parameters come from several classes, as users call them."""

from __future__ import annotations

import inspect

import griffe

BASE = "certgp.estimators.base.GPRegressor"


class Signatures(griffe.Extension):
    """Gives each estimator, which becomes a dataclass when its class is made, the constructor that it has then."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        estimators = pkg.modules.get("estimators")
        for module in [] if estimators is None else estimators.modules.values():
            for cls in module.classes.values():
                if not cls.is_alias and cls.path != BASE and any(str(base) == "GPRegressor" for base in cls.bases):
                    cls.set_member("__init__", _constructor(griffe.dynamic_import(cls.path)))


def _constructor(family: type) -> griffe.Function:
    own = [
        griffe.Parameter(
            each.name,
            annotation=str(each.annotation),
            kind=griffe.ParameterKind(each.kind.description),
            default=None if each.default is inspect.Parameter.empty else repr(each.default),
        )
        for each in inspect.signature(family).parameters.values()
    ]
    return griffe.Function("__init__", parameters=griffe.Parameters(*own))
