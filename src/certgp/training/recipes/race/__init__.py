"""The race between methods: who takes part, on which terms, how they stand, who wins and why."""

from certgp.training.recipes.race.entry import Entry
from certgp.training.recipes.race.race import Race
from certgp.training.recipes.race.terms import EFFORTS, PREFERENCES, Terms

__all__ = ["EFFORTS", "PREFERENCES", "Entry", "Race", "Terms"]
