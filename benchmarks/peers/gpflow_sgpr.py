"""GPflow's SGPR: ARD Gaussian kernel, learned inducing points, SciPy's L-BFGS as in its documentation."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf

from peers.protocol import STARTING_NOISE, Job, Recorder, TimeIsUp, serve


def run(job: Job, recorder: Recorder) -> dict[str, object]:
    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    recorder.start()
    model = gpflow.models.SGPR(
        (job.X, job.y[:, None]),
        gpflow.kernels.SquaredExponential(variance=1.0, lengthscales=job.starting_scales()),
        inducing_variable=job.inducing_points(),
        noise_variance=STARTING_NOISE,
    )
    predict, loss = tf.function(lambda: model.predict_y(job.X_test)), tf.function(model.training_loss)
    best: list[np.ndarray] = []

    def score() -> None:
        mean, variance = predict()
        recorder.add(mean.numpy()[:, 0], variance.numpy()[:, 0], float(loss()) / len(job.y))

    def after_step(step: int, variables: list[tf.Variable], values: list[tf.Tensor]) -> None:
        best[:] = [value.numpy() for value in values]
        if recorder.time_is_up:
            raise TimeIsUp
        if recorder.due:
            with recorder.paused():
                gpflow.optimizers.Scipy.assign_tensors(variables, values)
                score()

    variables, about = model.trainable_variables, {"gpflow": gpflow.__version__, "tensorflow": tf.__version__}
    try:
        result = gpflow.optimizers.Scipy().minimize(
            model.training_loss, variables, step_callback=after_step, options={"maxiter": job.budget}
        )
        about |= {"iterations": int(result.nit), "evaluations": int(result.nfev), "stopped": str(result.message)}
    except (TimeIsUp, tf.errors.InvalidArgumentError) as error:  # the latter: a Cholesky factor does not exist
        if not best:
            raise
        gpflow.optimizers.Scipy.assign_tensors(variables, best)
        about["stopped"] = type(error).__name__
    recorder.stop()
    score()
    return about


if __name__ == "__main__":
    serve(run)
