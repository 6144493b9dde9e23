"""FedRelax inside Flower's simulation, for those who run Flower already.

Flower is not needed by nefele: pip install "flwr[simulation]". Run with flwr 1.41.0, ray 2.55.1
and scikit-learn 1.9.1; start_simulation is deprecated there, and Flower's API changes often. It
sends all messages through its server. Here the strategy hands each client the weighted mean of its
neighbours' predictions on shared rows, so the server sees every client's predictions; between sites
without a server use `nefele site` with method "predictions".

    python examples/flower_fedrelax.py
"""

import numpy as np
from sklearn.linear_model import Ridge

ALPHA, ROUNDS, SHARED = 0.5, 10, 30
WEIGHTS = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]])  # of the edges


def shared_rows():
    """Rows that all clients know, without labels."""
    return np.random.default_rng(99).normal(size=(SHARED, 2))


def local_rows(i):
    """The rows of a client."""
    rng = np.random.default_rng(i)
    X = rng.normal(size=(10, 2))
    return X, X @ [1.0, -1.0] + i + 0.1 * rng.normal(size=10)


def neighbours_mean(predictions, weights):
    """For each client the weighted mean of its neighbours' predictions, shape (n, m')."""
    return weights @ predictions / weights.sum(axis=1, keepdims=True)


def update(X, y, X_shared, mean, degree, alpha):
    """Fit to own rows of weight 1 and shared rows of weight m alpha d / m' (AGN, Eq. (11))."""
    if mean is None:
        return Ridge().fit(X, y)
    weight = np.full(len(X_shared), len(y) * alpha * degree / len(X_shared))
    rows, target = np.concatenate([X, X_shared]), np.concatenate([y, mean])
    return Ridge().fit(rows, target, sample_weight=np.concatenate([np.ones(len(y)), weight]))


def main():
    """Run the simulation and print the last predictions' spread over clients."""
    import flwr
    from flwr.client import NumPyClient
    from flwr.common import FitIns, ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.server.strategy import FedAvg

    class Client(NumPyClient):
        """Owns rows and a model; answers by predictions on the shared rows."""

        def fit(self, parameters, config):
            i = int(config["client"])
            mean = parameters[0] if config["round"] > 0 else None
            model = update(*local_rows(i), shared_rows(), mean, WEIGHTS[i].sum(), ALPHA)
            return [model.predict(shared_rows())], 1, {"client": i}

    class FedRelax(FedAvg):
        """Gives each client the mean of its neighbours in place of one model for all."""

        predictions = np.zeros((len(WEIGHTS), SHARED))

        def configure_fit(self, server_round, parameters, client_manager):
            means = neighbours_mean(self.predictions, WEIGHTS)
            clients = sorted(client_manager.all().values(), key=lambda client: client.cid)
            return [
                (
                    client,
                    FitIns(
                        ndarrays_to_parameters([means[i]]), {"client": i, "round": server_round - 1}
                    ),
                )
                for i, client in enumerate(clients)
            ]

        def aggregate_fit(self, server_round, results, failures):
            if failures:
                raise RuntimeError(f"{len(failures)} clients failed: {failures[0]}")
            for _, result in results:
                found = parameters_to_ndarrays(result.parameters)[0]
                self.predictions[int(result.metrics["client"])] = found
            return ndarrays_to_parameters([self.predictions]), {}

    strategy = FedRelax(
        min_available_clients=len(WEIGHTS),
        fraction_evaluate=0.0,
        initial_parameters=ndarrays_to_parameters([np.zeros(SHARED)]),
    )
    flwr.simulation.start_simulation(
        client_fn=lambda context: Client().to_client(),
        num_clients=len(WEIGHTS),
        config=flwr.server.ServerConfig(num_rounds=ROUNDS + 1),
        strategy=strategy,
        client_resources={"num_cpus": 1},
    )
    print("mean prediction of each client:", strategy.predictions.mean(axis=1).round(3))
    return strategy.predictions


if __name__ == "__main__":
    main()
