"""The exported names, and that each of them is documented with an example."""

import doctest
import importlib
import inspect
import re
from enum import Enum

import pytest

EXPORTED = {
    "nefele": [
        "Certificate",
        "ConvergenceWarning",
        "ConvexClustering",
        "DataWarning",
        "FedRelaxClassifier",
        "FedRelaxRegressor",
        "ForwardWithinNode",
        "GTVClassifier",
        "GTVClassifierCV",
        "GTVRegressor",
        "GTVRegressorCV",
        "Graph",
        "GraphSelectorCV",
        "GraphSignalSmoother",
        "LocalData",
        "PathResult",
        "Problem",
        "Record",
        "Result",
        "Status",
        "Stream",
        "TableEncoder",
        "WithinNodeKFold",
        "accountable",
        "agnostic",
        "as_graph",
        "baselines",
        "bootstrap_intervals",
        "components_of",
        "datasets",
        "encoding",
        "engines",
        "estimators",
        "explain",
        "fairness",
        "flavours",
        "graph_learning",
        "graphs",
        "keep_node",
        "lam_max",
        "load",
        "losses",
        "networks",
        "online",
        "path",
        "penalties",
        "plot_residuals",
        "privacy",
        "report",
        "robust",
        "runtime",
        "selection",
        "sites",
        "solve",
        "solvers",
        "theory",
    ],
    "nefele.accountable": [
        "Cost",
        "ExplainableFit",
        "Explanation",
        "Fairness",
        "Minimax",
        "PredictionExplanation",
        "explain",
        "fairness",
        "fit_explainable",
        "fit_minimax",
        "measure_cost",
    ],
    "nefele.agnostic": [
        "FedRelaxClassifier",
        "FedRelaxRegressor",
        "NodeBoosting",
        "RelaxedBoosting",
        "TorchClassifier",
        "TorchRegressor",
        "boosting",
    ],
    "nefele.baselines": [
        "Comparison",
        "Fit",
        "compare",
        "fedavg",
        "fedgd",
        "fedprox",
        "fedsgd",
        "gtv",
        "ifca",
        "local",
        "oracle",
        "pooled",
    ],
    "nefele.flavours": [
        "centralised",
        "clustered",
        "decentralised",
        "horizontal",
        "personalised",
        "vertical",
    ],
    "nefele.graph_learning": [
        "AlternatingGraph",
        "BlockModelCleanup",
        "CliqueGraph",
        "DegreeGraph",
        "DelaunayGraph",
        "EmbeddingKNN",
        "GlassoGraph",
        "GradientGraph",
        "GraphBuilder",
        "GraphDiagnostics",
        "LabelGraph",
        "LinkPrediction",
        "LossGraph",
        "MomentsKNN",
        "NoEdges",
        "PairwiseGraph",
        "PoolingGainGraph",
        "RadiusGraph",
        "ShuffledGraph",
        "SmoothSignalGraph",
        "SpatialKNN",
        "TestGraph",
        "TrainingRows",
        "WassersteinGraph",
        "choose_by_validation",
        "communities",
        "connect_graph",
        "fit_block_model",
        "graph_diagnostics",
        "graph_from_discrepancy",
        "learn_smooth_graph",
        "link_scores",
        "modularity",
        "normalize_weights",
        "solve_degrees",
        "sparsify_graph",
        "squared_wasserstein",
    ],
    "nefele.networks": [
        "GTVNetClassifier",
        "GTVNetClassifierCV",
        "GTVNetRegressor",
        "GTVNetRegressorCV",
        "GainGraph",
        "GradientGraph",
        "Layers",
        "PredictionGraph",
    ],
    "nefele.networks.baselines": [
        "APFL",
        "Ditto",
        "FedAMP",
        "FedAvg",
        "FedPer",
        "FedProx",
        "FedRep",
        "Local",
        "Method",
        "PFedMe",
        "PerFedAvg",
        "PersonalClassifier",
        "PersonalRegressor",
        "Pooled",
    ],
    "nefele.privacy": [
        "Bounds",
        "Budget",
        "BudgetError",
        "Price",
        "Privacy",
        "Spent",
        "audit",
        "calibrate",
        "epsilon_of",
        "maps",
        "price",
    ],
    "nefele.privacy.audit": [
        "Information",
        "LowerBound",
        "Membership",
        "Reconstruction",
        "canary",
        "gaussian_delta",
        "gaussian_epsilon",
        "gaussian_mu",
        "loss_attack",
        "membership",
        "mutual_information",
        "row_from_gradient",
        "statistics_from_answers",
        "statistics_from_messages",
        "watch",
    ],
    "nefele.privacy.maps": [
        "AddNoise",
        "CourseMap",
        "KAnonymous",
        "Remains",
        "RemoveAttribute",
        "plot_cells",
        "plot_removed",
        "what_remains",
    ],
    "nefele.report": ["Picture", "Step", "View", "render", "write_report"],
    "nefele.robust": [
        "Alie",
        "Backdoor",
        "CentredClip",
        "CleanLabel",
        "Clip",
        "Constant",
        "Curious",
        "FLTrust",
        "FlipLabels",
        "GeometricMedian",
        "Guarded",
        "InfluenceBound",
        "InnerProduct",
        "Krum",
        "Last",
        "Median",
        "MessageAttack",
        "PoisonFeatures",
        "Random",
        "Rule",
        "Saturation",
        "ShiftLabels",
        "SignFlip",
        "Suspects",
        "Sybil",
        "TrimmedMean",
        "Without",
        "WorstNodes",
        "centred_clipping",
        "coordinate_median",
        "fltrust",
        "geometric_median",
        "influence_bound",
        "krum",
        "saturation",
        "suspects",
        "trimmed_mean",
        "without_node",
        "worst_nodes",
    ],
    "nefele.runtime": [
        "Faults",
        "InProcess",
        "Ledger",
        "Message",
        "Part",
        "Round",
        "Run",
        "join",
        "pass_messages",
        "relax_messages",
        "split",
    ],
    "nefele.sites": ["Federation", "Site", "learn_together"],
    "nefele.theory": [
        "CertifiedClusters",
        "CriticalLambda",
        "EdgeInfluence",
        "ErrorBound",
        "FlowNetwork",
        "FlowSolution",
        "PhaseDiagram",
        "SpectrumBounds",
        "SpreadBound",
        "Suggestion",
        "WellConnected",
        "certify_clusters",
        "cluster_bound",
        "consensus_bound",
        "critical_lambda",
        "edge_influence",
        "error_bound",
        "label_sensitivity",
        "min_cost_flow",
        "phase_diagram",
        "plot_certified",
        "plot_contraction",
        "plot_critical_flow",
        "plot_error_bound",
        "plot_flow",
        "plot_influence",
        "plot_phase",
        "plot_sensitivity",
        "plot_slack",
        "plot_spread",
        "spectrum_bounds",
        "suggest_nodes",
        "well_connected",
    ],
    "nefele.datasets": [
        "IncomesData",
        "StatesData",
        "load_incomes",
        "load_states",
        "split_incomes",
        "split_states",
    ],
    "nefele.encoding": ["TableEncoder", "group_level"],
    "nefele.engines": [
        "Costs",
        "Entry",
        "PartCosts",
        "PartTable",
        "PartsFit",
        "PartsIndex",
        "PartsResult",
        "partition",
        "solve",
        "solve_parts",
        "write_index",
        "write_part",
    ],
    "nefele.estimators": [
        "ClusterPath",
        "Components",
        "ConvexClustering",
        "ForwardWithinNode",
        "GTVClassifier",
        "GTVClassifierCV",
        "GTVRegressor",
        "GTVRegressorCV",
        "GraphBuilder",
        "GraphSelectorCV",
        "GraphSignalSmoother",
        "Intervals",
        "KeepNode",
        "MomentsKNN",
        "SpatialKNN",
        "TrainingRows",
        "WithinNodeKFold",
        "bootstrap_intervals",
        "components_of",
        "keep_node",
        "load",
        "plot_residuals",
    ],
    "nefele.graphs": [
        "MappedGraph",
        "as_graph",
        "chain",
        "geometric",
        "grid",
        "knn",
        "mapped",
        "sbm",
        "star",
        "trend",
    ],
    "nefele.losses": [
        "Absolute",
        "BoundLoss",
        "Box",
        "Constrained",
        "Constraint",
        "DualPoint",
        "GraphicalLasso",
        "Hinge",
        "HuberLoss",
        "Logistic",
        "Loss",
        "Multinomial",
        "Nonnegative",
        "PointwiseLoss",
        "Poisson",
        "Quantile",
        "Simplex",
        "Squared",
        "SquaredHinge",
        "Zero",
        "as_bound_loss",
        "as_loss",
        "matrices",
    ],
    "nefele.online": ["Stream"],
    "nefele.penalties": [
        "ByEdge",
        "HuberPenalty",
        "L1Norm",
        "L2Norm",
        "LinfNorm",
        "Lp",
        "Partial",
        "Penalty",
        "Quadratic",
        "SquaredL2",
        "as_penalty",
        "edge_penalties",
        "penalty_of",
    ],
    "nefele.selection": [
        "ForwardWithinNode",
        "Gain",
        "Verdict",
        "WithinNodeKFold",
        "alpha_grid",
        "choose",
        "choose_by_others",
        "clearest",
    ],
    "nefele.solvers": [
        "ADMM",
        "FedRelax",
        "Local",
        "Merging",
        "Newton",
        "PrimalDual",
        "PrimalDualGradient",
        "QuadraticCG",
        "Solver",
        "State",
        "StochasticPrimalDual",
        "as_solver",
        "run",
        "solve",
    ],
}
THINGS = sorted(
    {
        (thing.__module__, thing.__qualname__): thing
        for package, names in EXPORTED.items()
        for name in names
        if not inspect.ismodule(thing := getattr(importlib.import_module(package), name))
    }.items()
)
PUBLIC = pytest.mark.parametrize(
    "thing", [t for _, t in THINGS], ids=[f"{m}.{q}" for (m, q), _ in THINGS]
)


@pytest.mark.parametrize("package", EXPORTED)
def test_exported_names(package):
    module = importlib.import_module(package)
    assert module.__all__ == EXPORTED[package] == sorted(EXPORTED[package])
    assert all(hasattr(module, name) for name in module.__all__)


def test_nothing_public_is_left_out():
    """Every public class of the package that is defined where users look is exported."""
    for package, names in EXPORTED.items():
        module = importlib.import_module(package)
        here = {
            name
            for name, thing in vars(module).items()
            if not name.startswith("_")
            and (inspect.isclass(thing) or inspect.isfunction(thing))
            and thing.__module__.startswith(package + ".")
            and inspect.getdoc(thing)
        }
        internal = {"BoundMixed", "BoundZero", "UserLoss", "Checkpoint", "load", "solver_name"}
        assert here - internal <= set(names)


def abstract_or_warning(thing):
    """What has no values of its own to show: bases, warnings, records of a loop."""
    return inspect.isclass(thing) and (inspect.isabstract(thing) or issubclass(thing, Warning))


@PUBLIC
def test_has_a_docstring_that_starts_with_one_line(thing):
    text = inspect.getdoc(thing)
    assert text
    first, *rest = text.splitlines()
    assert first.endswith((".", ":")) or not rest[:1] or not rest[0].strip()
    assert len(first) <= 100


@PUBLIC
def test_has_an_example(thing):
    if abstract_or_warning(thing):
        return
    assert doctest.DocTestParser().get_examples(inspect.getdoc(thing)), thing


def described(text):
    """Names in the sections Parameters and Attributes of a docstring."""
    lines = inspect.cleandoc(text or "").split("\n")
    names, told = set(), False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch("-{3,}", below):
            told = line in ("Parameters", "Attributes")
        elif told and line and line[0] not in " -":
            names |= {name.strip() for name in line.partition(" :")[0].split(",")}
    return names


def parameters(thing):
    """What a call may give by name."""
    if inspect.isclass(thing) and issubclass(thing, Enum | Warning | Exception):
        return []
    if not callable(thing):
        return []
    found = inspect.signature(thing).parameters.values()
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in found if p.kind not in several and not p.name.startswith("_")]


def test_sections_of_docstrings_are_read():
    text = "One line.\n\n    Parameters\n    ----------\n    a, b : int\n        Two: c.\n    d\n\n"
    assert described(text + "    Examples\n    --------\n    e : no\n") == {"a", "b", "d"}


@PUBLIC
def test_every_parameter_is_described(thing):
    texts = [one.__doc__ for one in thing.__mro__] if inspect.isclass(thing) else [thing.__doc__]
    known = set().union(*map(described, texts))
    assert set(parameters(thing)) <= known


@PUBLIC
def test_public_methods_have_docstrings(thing):
    if not inspect.isclass(thing):
        return
    for name, member in vars(thing).items():
        is_callable = inspect.isfunction(member) or isinstance(member, classmethod | property)
        if not name.startswith("_") and is_callable:
            assert inspect.getdoc(getattr(thing, name)), f"{thing.__name__}.{name}"


def methods(thing):
    """Public methods of a class that the package defines, with all docstrings of their name."""
    for name in dir(thing) if inspect.isclass(thing) else ():
        owners = [one for one in thing.__mro__ if name in vars(one)]
        if name.startswith("_") or not owners or not owners[0].__module__.startswith("nefele"):
            continue
        found = [vars(one)[name] for one in owners]
        member = getattr(found[0], "__func__", found[0])  # of class methods
        member = getattr(member, "fn", member)  # of those that are there for some parameters only
        if inspect.isfunction(member) and "." in member.__qualname__:
            yield name, member, [getattr(one, "__func__", one).__doc__ for one in found]


@PUBLIC
def test_every_parameter_of_a_method_is_described(thing):
    """By the method itself, or by the one that it takes the place of."""
    for name, member, texts in methods(thing):
        known = set().union(*map(described, texts))
        asked = [one for one in parameters(member) if one not in ("self", "cls")]
        assert set(asked) <= known, f"{thing.__name__}.{name}"
