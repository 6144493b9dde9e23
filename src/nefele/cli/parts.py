"""`nefele partition` and `nefele fit-parts`: data larger than one machine, by parts."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nefele.cli import _options as options
from nefele.cli._common import Json, Quiet, input_errors, print_json, say, teller
from nefele.cli._options import Flag, split_names

if TYPE_CHECKING:
    from nefele.engines import PartsFit


def partition(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Parquet or CSV file, or one of an object store.")
    ],
    edges: Annotated[
        str,
        typer.Argument(metavar="EDGES", help="Such a file with source, target, perhaps weight."),
    ],
    parts: Annotated[int, Flag(help="Number of parts.")],
    out: Annotated[str, Flag(help="New folder for the parts, or one of an object store.")],
    node: options.Node,
    target: options.Target,
    features: options.Features = None,
    by: Annotated[
        str | None,
        Flag(
            help="Column whose values keep nodes together, such as a region.", show_default="METIS"
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write rows and edges as one Parquet file per part, one part at a time.

    Each file has the part's own nodes with their rows, its edges, and the nodes of others that
    these reach. Nobody holds all rows.
    """
    with input_errors():
        from nefele.engines import partition as write

        index = write(
            data,
            edges,
            parts=parts,
            out=out,
            node=node,
            target=target,
            features=_names(features),
            by=by,
            say=teller(quiet or json),
        )
    cut = sum(part.neighbours != [] for part in index.parts)
    facts = {
        "out": out,
        "parts": len(index.parts),
        **{name: index.total(name) for name in ("nodes", "edges", "rows")},
        "components": index.components,
        "linked_parts": cut,
        "largest_part": max(part.nodes for part in index.parts),
    }
    if json:
        print_json(facts)
    elif not quiet:
        say(
            f"{facts['nodes']:,} nodes, {facts['edges']:,} edges and {facts['rows']:,} rows are in "
            f"{facts['parts']} parts of at most {facts['largest_part']:,} nodes in {out}."
        )


def fit_parts(
    folder: Annotated[
        str, typer.Argument(metavar="PARTS", help="Folder written by nefele partition.")
    ],
    out: Annotated[str, Flag(help="New folder for the parameters, or one of an object store.")],
    alpha: Annotated[float, Flag(help="Strength of the coupling, > 0.")],
    penalty: Annotated[str, Flag(help="l2, l1, linf, squared_l2 or huber.")] = "l2",
    loss: Annotated[str, Flag(help="squared, logistic (labels -1 and 1), huber, ...")] = "squared",
    intercept: Annotated[bool, Flag(help="Whether each node has an intercept.")] = True,
    tol: options.Tol = 1e-4,
    max_iter: Annotated[int | None, Flag(help="Most iterations.")] = None,
    engine: Annotated[str, Flag(help="ray, mpi or in_process.")] = "ray",
    address: options.Address = None,
    checkpoint: Annotated[
        Path | None, Flag(help="Folder for checkpoints, which all workers can write.")
    ] = None,
    every: Annotated[int, Flag(help="Iterations between checkpoints.")] = 100,
    resume: Annotated[bool, Flag("--resume", help="Go on from the last checkpoint.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Solve the problem of a folder of parts; every worker reads and writes its own part.

    Parameters are written as one Parquet file per part. Features are taken as they are.
    """
    with input_errors(), warnings.catch_warnings():
        from nefele.engines import solve_parts
        from nefele.result import ConvergenceWarning

        warnings.simplefilter("ignore", ConvergenceWarning)  # told with the result

        if not 0 < alpha < float("inf"):
            raise ValueError(f"--alpha must be finite and > 0; got {alpha:g}.")
        if resume and checkpoint is None:
            raise ValueError("--resume must go with --checkpoint, the folder to go on from.")
        fit = solve_parts(
            folder,
            out,
            lam=alpha,
            loss=loss,
            penalty=penalty,
            intercept=intercept,
            tol=tol,
            max_iter=max_iter,
            engine=engine,
            checkpoint=checkpoint,
            every=every,
            resume=checkpoint if resume else None,
            address=address,
            verbose=not (quiet or json),
        )
    from nefele.runtime.drivers.mpi_ranks import is_first

    if is_first():  # of all processes that a scheduler has started
        _show(fit, json, quiet)
    raise typer.Exit(0 if fit.converged else 1)


def _show(fit: PartsFit, as_json: bool, quiet: bool) -> None:
    costs = fit.costs
    facts: dict[str, Any] = {
        "out": fit.out,
        "objective": fit.objective,
        "gap": fit.gap if fit.gap < float("inf") else None,
        "certificate": fit.certificate,
        "status": str(fit.status),
        "advice": fit.advice,
        "iterations": fit.n_iter,
        "seconds": costs.seconds,
        "bound_by": costs.bound_by,
        "imbalance": costs.imbalance,
        "lost_workers": costs.lost,
        "parts": [vars(part) for part in costs.parts],
    }
    if as_json:
        print_json(facts)
    elif not quiet:
        say(
            f"{fit.status} after {fit.n_iter} iterations: objective {fit.objective:.6g}, certified "
            f"gap {fit.gap:.1e}. Parameters are in {fit.out}."
        )
        say(str(costs))
        if not fit.converged:
            say(fit.advice)


def _names(text: str | None) -> list[str] | None:
    names = split_names(text, "--features")
    return None if names is None else list(names)
