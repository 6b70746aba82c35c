"""Recipes: how each method is trained, one file per method, and the race between them."""

from certgp.training.recipes.deep import DeepTrainer
from certgp.training.recipes.deep_member import DeepRecipe
from certgp.training.recipes.exact import ExactTrainer
from certgp.training.recipes.fourier import FourierRecipe
from certgp.training.recipes.local import LocalTrainer
from certgp.training.recipes.local_rounds import LocalRecipe
from certgp.training.recipes.mercer import MercerRecipe
from certgp.training.recipes.plain import PlainRecipe
from certgp.training.recipes.race import EFFORTS, PREFERENCES, Entry, Race, Terms
from certgp.training.recipes.settings import AUTOMATIC, DTYPES, OBJECTIVES, VARIANCES, Settings, Start
from certgp.training.recipes.sparse import SparseRecipe
from certgp.training.recipes.staged import Job, Plan, Recipe, StagedTrainer, TrialRows
from certgp.training.recipes.trainer import Fit, Trainer

__all__ = [
    "AUTOMATIC",
    "DTYPES",
    "EFFORTS",
    "OBJECTIVES",
    "PREFERENCES",
    "VARIANCES",
    "DeepRecipe",
    "DeepTrainer",
    "Entry",
    "ExactTrainer",
    "Fit",
    "FourierRecipe",
    "Job",
    "LocalRecipe",
    "LocalTrainer",
    "MercerRecipe",
    "PlainRecipe",
    "Plan",
    "Race",
    "Recipe",
    "Settings",
    "SparseRecipe",
    "StagedTrainer",
    "Start",
    "Terms",
    "Trainer",
    "TrialRows",
]
