"""Parameters that several estimators share, each declared once. Estimators are dataclasses made of these groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import nn

from certgp.kernels import Kernel
from certgp.training import Callback
from certgp.training.recipes.deep_member import BuildHead, DeepRecipe


@dataclass(kw_only=True, eq=False, repr=False)
class SharedParameters:
    """Of all estimators.

    kernel : "gaussian", "matern12", "matern32", "matern52", a sum of such ("matern52 + matern12") or a kernel object
        with starting values
    standardize : centre and scale X and y inside; results are in the user's units either way
    warp : bend skewed columns of X before the kernel sees them: each by a power transform (Yeo and Johnson) that brings
        it nearest to a Gaussian, ``warp_``. "auto": where a column is clearly skewed, and a quick GP predicts held-out
        training rows better by it, by more than two standard errors. Then ``kernel_``, ``projection_`` and, with
        ``warp=True``, starting length-scales and Mercer's ``input_scale`` are in units of the warped columns, which
        have mean zero and standard deviation one. "auto" leaves X alone where such lengths, a kernel object, or a
        periodic or linear kernel are given; it takes about a second, at most a tenth of ``max_seconds``
    noise : how new observations scatter around f. "constant": alike everywhere. "input": as much as rows that the model
        has not seen scatter at such inputs (``noise_model_``), mixed with a wide constant component. "auto": like that
        where these rows prefer it to the best constant noise by more than two standard errors (``noise_gain_``), else
        constant; always constant with ``optimize=False``. Where they say that the model is less sure of f than it
        might be, a part of its latent variance enters observations. Those of f, means and certificates are the same
    likelihood : "gaussian", or "student" for targets with outliers: noise is Student's t, fitted by weighing rows less
        the further they are from what the others say (``row_weights_``). Degrees of freedom and scale are those under
        which rows predicted without their own targets are likeliest (``noise_model_``); where a Gaussian is as good to
        within two standard errors, the fit is the Gaussian one. Costs up to three fits. Certificates speak of the GP
        with these weights
    confirm : where rows are few for the numbers that are learned from them, rows left out of the whole training must be
        predicted better than by a constant; else the model is made less sure, with a ``WeakSignalWarning``. False: the
        fit as its objective has it
    calibrate : learn from nine tenths of the rows and scale the predictive noise (``noise_scale_``) to suit the last
        tenth, on which the model is then conditioned too
    random_state : seed of the subsamples
    verbose : 1 shows stage, iteration, objective, held-out score, rows a second and time left: one line that moves on a
        terminal and in a notebook, elsewhere a line an iteration, which 2 prints everywhere
    callbacks : called with each ``Iteration``; one that returns True stops the fit, for good; a
        ``certgp.training.StopRule`` puts it off: a ``checkpoint`` stays, to go on from
    max_seconds : of wall-clock time, kept to about a fifth: training ends in time, with the best parameters so far.
        ``stop_reason_`` says so, and a ``checkpoint`` stays. With ``rank="auto"`` it ends the search for a rank too,
        one proof apart
    """

    kernel: str | Kernel = "gaussian"
    standardize: bool = True
    warp: bool | Literal["auto"] = False
    noise: str = "auto"
    likelihood: str = "gaussian"
    confirm: bool = True
    calibrate: bool = False
    random_state: Any = None
    verbose: int = 0
    callbacks: Sequence[Callback] | None = None
    max_seconds: float | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class StartParameters:
    """Where a fit starts, and how long it goes on.

    length_scale, signal_variance, noise_variance : starting values in the units of the data, kept when
        ``optimize=False``. Low-rank models optimise signal variance and noise in closed form, so with ``optimize=True``
        their starting values do not matter.
    max_iter : optimiser iterations
    """

    length_scale: float | Sequence[float] | None = None
    signal_variance: float | None = None
    noise_variance: float | None = None
    optimize: bool = True
    max_iter: int = 100


@dataclass(kw_only=True, eq=False, repr=False)
class LowRankParameters:
    """Of models of low rank.

    rank : number of features, or "auto": as many as it takes to prove KL(exact || model) / N <= ``tolerance``
    tolerance, max_rank : for ``rank="auto"``: nats per row, and where the search ends with a warning
    dtype : "float64"; "float32" features with float64 sums, without certificates; or "mixed", float32 features on the
        subsample and float64 on all rows
    engine : "local" or an engine object
    checkpoint : a file that keeps an interrupted fit: fitting again with the same data and parameters goes on from it
        and ends with the same model; it is removed when the fit is done
    cap_rank : use no more features than X has distinct rows
    """

    rank: int | Literal["auto"] = field(default=100, kw_only=False)
    tolerance: float = 1e-3
    max_rank: int = 1_000
    dtype: str = "float64"
    engine: Any = "local"
    checkpoint: str | Path | None = None
    cap_rank: bool = True


@dataclass(kw_only=True, eq=False, repr=False)
class ObjectiveParameters:
    """What low-rank models maximise, and how sure they are.

    objective : "elbo" (a lower bound on the exact evidence; needs features dominated by the kernel) or "marginal"
    variance : "dtc" adds the prior variance lost by truncation (needs them too), "lowrank" adds it outside the range of
        the training inputs only, "paper" nowhere: the low-rank model itself, most certain far from all data
    """

    objective: str = "elbo"
    variance: str = "dtc"


@dataclass(kw_only=True, eq=False, repr=False)
class ManyRowsParameters:
    """How models of low rank learn from very many rows.

    growing : with more than 131,072 rows, learn hyper-parameters from random subsets that grow until more rows change
        nothing that matters, then from a few evaluations on all rows (``history_.stages`` says how many rows each stage
        saw; these iterations come on top of ``max_iter``). False: every iteration but those of trials sees all rows
    """

    growing: bool = True


@dataclass(kw_only=True, eq=False, repr=False)
class DeepParameters:
    """Of models with a network g(x) in front of the kernel.

    hidden : widths of the hidden layers of the default network (tanh); () makes it linear
    network : a ``torch.nn.Module`` that maps rows (n, D) of standardised inputs to (n, embedding), instead of the
        default network. It is copied, never changed; its weights are where training starts.
    training : "running" (small steps with running statistics of all rows), "full" (L-BFGS on the exact gradient of all
        rows) or "paper" (the paper's recipe: pre-training on squared error, then semi-stochastic asynchronous steps; no
        held-out rows, no calibration)
    max_iter : epochs, or L-BFGS iterations with training="full"
    batch_size : rows per step; smaller where there are few rows
    learning_rate : of the network; length-scales and variances have one of their own
    shrinkage : weight decay: weights would shrink by exp(-shrinkage) over the fit if no gradient held them
    validation_fraction : share of the training rows on which the best epoch and the noise are chosen
    patience : stop after so many validations (one every two epochs) without a better one; None runs all epochs
    members : number of networks, with seeds and held-out rows of their own; predictions are the mixture of theirs. They
        are trained side by side, in processes of one thread each and as many as torch may use threads, unless the fit
        is short or has callbacks, ``verbose`` or an engine of its own: then one after the other. A callback that stops
        the fit keeps the members that are done, or the first one as far as it came.
    """

    hidden: Sequence[int] = (512, 256, 64)
    network: nn.Module | None = None
    training: str = "running"
    max_iter: int = 40
    batch_size: int = 250
    learning_rate: float = 4e-3
    shrinkage: float = 0.5
    validation_fraction: float = 0.1
    patience: int | None = None
    members: int = 1

    def deep_recipe(
        self, build_head: BuildHead, group: int, default_rank: int, embedding: int, calibrate: bool
    ) -> DeepRecipe:
        """These parameters with those of a head, for whatever trains the model."""
        return DeepRecipe(
            build_head=build_head,
            group=group,
            default_rank=default_rank,
            embedding=embedding,
            hidden=self.hidden,
            network=self.network,
            training=self.training,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            shrinkage=self.shrinkage,
            validation_fraction=self.validation_fraction,
            patience=self.patience,
            members=self.members,
            calibrate=calibrate,
        )
