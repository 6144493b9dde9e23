"""The program of a member, by the method that all agreed to."""

from __future__ import annotations

from nefele._checks import Array
from nefele.program import Program
from nefele.sites.config import Model
from nefele.sites.learning import Learner
from nefele.sites.learnt import Learnt
from nefele.sites.models import maker
from nefele.sites.predicting import Predicted, Predictor


def program_of(learner: Learner, model: Model | None, shared: Array) -> Program[Learnt | Predicted]:
    """The program of a member by the agreed method."""
    terms = learner.federation.network
    if terms is not None:
        from nefele.sites.networking import NetLearner  # torch is an extra

        return NetLearner(learner, terms).run()
    if learner.federation.method != "predictions" or model is None:
        return learner.run()
    return Predictor(learner, maker(model), shared).run()
