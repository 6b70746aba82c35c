"""A recipe: inducing points at k-means centres, from short and from long length-scales, whichever predicts better."""

from certgp.estimators import GPRegressor, LowRankParameters, ObjectiveParameters, SharedParameters, StartParameters
from certgp.features import NystromMap, kmeans_inducing_points
from certgp.gp import LowRankModel
from certgp.training import Candidate, Stage
from certgp.training.recipes import Plan, Recipe, StagedTrainer
from certgp.transforms import Identity


class TwoStartsRecipe(Recipe):
    """A tenth of the iterations on a subsample for each start, the rest on all rows for the better one."""

    def plan(self, job):
        columns, trial = job.source.n_columns, job.settings.max_iter // 10
        points = kmeans_inducing_points(job.source.sample(10_000, job.rng).X, job.rank, job.rng)
        candidates = []
        for name, length in {"short": 0.3, "long": 3.0}.items():
            start = job.settings.start(length * columns**0.5)
            model = LowRankModel(Identity(columns), NystromMap(start.kernel, points))
            rounds = [[Stage(job.rows.learn, trial)]] if trial else []
            rest = [Stage(job.source, job.settings.max_iter - trial)]
            candidates.append(Candidate(name, model, rounds, rest))
        return Plan.of(candidates, start)


class TwoStartsGP(ObjectiveParameters, LowRankParameters, StartParameters, SharedParameters, GPRegressor):
    """Sparse regression from two starts."""

    def trainer(self, settings):
        return StagedTrainer(TwoStartsRecipe(), settings)
