"""`nefele federation`: found one, sign its members' requests, look at it, try it out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nefele.cli._common import Json, Quiet, input_errors, print_json, say, teller

if TYPE_CHECKING:
    from nefele.sites.federation import Federation

federation = typer.Typer(
    no_args_is_help=True,
    help="Sites that keep their data: found a federation, sign requests, try it out.",
)
Fed = Annotated[
    Path, typer.Argument(metavar="FED", help="Folder of a federation, or its federation.toml.")
]


@federation.command()
def new(
    graph: Annotated[
        Path | None,
        typer.Argument(metavar="GRAPH", help="Edge file: source, target and perhaps weight."),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Argument(metavar="SCHEMA", help="TOML file: features, target, members."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the federation.")] = None,
    template: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only write a commented schema to start from."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write federation.toml from a graph and a schema, and make the key of its authority."""
    with input_errors():
        if template is not None:
            if graph is not None or schema is not None:
                raise ValueError(
                    "--template writes a schema and reads nothing. Leave out the files."
                )
            facts = _write_template(template)
        else:
            if graph is None or schema is None or out is None:
                raise ValueError(
                    "A federation must have a graph, a schema and a folder: nefele federation new "
                    "GRAPH SCHEMA --out FED. Write a schema by --template data-schema.toml."
                )
            facts = _found(graph, schema, out, quiet)
    if json:
        print_json(facts)
    elif not quiet:
        say(facts["next"])


def _write_template(file: Path) -> dict[str, Any]:
    from nefele.runs.folder import RunFolder, check_writable
    from nefele.sites.founding import schema_template

    if file.exists():
        raise ValueError(f"{str(file)!r} is there already. Name another.")
    check_writable(file.parent)
    RunFolder(file.parent).write_text(file.name, schema_template(file.name))
    text = f"Wrote {file}. Fill it in, then: nefele federation new graph.csv {file} --out FED"
    return {"file": str(file), "next": text}


def _found(graph: Path, schema: Path, out: Path, quiet: bool) -> dict[str, Any]:
    need_cryptography()
    from nefele.runs.folder import check_writable
    from nefele.sites.founding import AUTHORITY, found_federation

    check_writable(out)
    made, notes = found_federation(graph, schema, out)
    for note in notes:
        teller(quiet)(note)
    text = (
        f"Wrote {out}: {len(made.members)} members, {len(made.edges)} edges. Keep "
        f"{out / AUTHORITY} to yourself, and give {out / 'federation.toml'} to every member. "
        f"Hash: {made.hash}"
    )
    return {"folder": str(out), **summary(made), "notes": notes, "next": text}


@federation.command()
def sign(
    fed: Fed,
    request: Annotated[
        Path, typer.Argument(metavar="REQUEST", help="request.pem that a member sent.")
    ],
    days: Annotated[float, typer.Option(help="How long the certificate is valid.")] = 397,
    out: Annotated[
        Path | None, typer.Option(help="File for the answer.", show_default="answer-NAME.pem")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer a member's request with a certificate; compare the fingerprint by phone first."""
    with input_errors():
        need_cryptography()
        from nefele.runs.folder import check_writable
        from nefele.sites.federation import Federation
        from nefele.sites.founding import AUTHORITY
        from nefele.sites.identity import CERTIFICATE, fingerprint, sign_request
        from nefele.sites.validity import check_chain, days_left

        made = Federation.read(fed)
        home = (fed if fed.is_dir() else fed.parent) / AUTHORITY
        content = read_request(request)
        certificate = sign_request(home, content, made, days)
        authority = (home / CERTIFICATE).read_bytes()
        name = check_chain(certificate, authority)
        out = out or Path(f"answer-{name}.pem")
        if out.exists():
            raise ValueError(f"{str(out)!r} is there already. Name another by --out.")
        check_writable(out.parent)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(certificate + authority)
    facts = {"name": name, "fingerprint": fingerprint(content), "answer": str(out)}
    if json:
        print_json({**facts, "days": round(days_left(certificate), 3)})
        return
    say(f"Fingerprint of the request of {name}: {facts['fingerprint']}")
    if not quiet:
        say(f"Ask {name} by phone whether it is theirs. If it is not, delete {out}.")
        say(f"Wrote {out}, valid for {days:g} days. They join by: nefele site join DIR {out.name}")


@federation.command()
def show(fed: Fed, json: Json = False) -> None:
    """Say in words what a federation agrees to, and its hash."""
    with input_errors():
        from nefele.sites.federation import Federation

        made = Federation.read(fed)
    if json:
        print_json(summary(made))
        return
    for line in _lines(made):
        say(line)


def _lines(made: Federation) -> list[str]:
    target = made.target
    goal = f"classes {', '.join(target.classes)}" if target.classes else _range(target)
    alpha = made.alpha if isinstance(made.alpha, str) else f"{made.alpha:g}"
    lines = [
        f"Federation {made.name}: {len(made.members)} members, {len(made.owner)} nodes, "
        f"{len(made.edges)} edges.",
        f"Predicts {target.name} ({goal}) from {len(made.features)} features: "
        + ", ".join(f"{f.name} ({_range(f)})" for f in made.features)
        + ".",
        f"Method {made.method}, {made.loss} loss, penalty {made.penalty}, alpha {alpha}, ridge "
        f"{made.l2:g}, to a gap of {made.tol:g}.",
        f"Silent members: {made.absent} after {made.absent_after:g} s. Privacy: "
        f"{made.privacy.text()}. Masked sums: {'yes' if made.masked else 'no'}. "
        f"Guard: {made.guard or 'none'}.",
    ]
    if made.relay is not None:
        lines.append(f"Relay: {made.relay}.")
    for member in made.members:
        near = ", ".join(made.neighbours(member.name)) or "nobody"
        where = member.address or "no address"
        nodes = f"{len(member.nodes)} node{'s' * (len(member.nodes) != 1)}"
        lines.append(f"  {member.name}: {nodes}, {member.kind}, {where}; talks to {near}.")
    if not made.has_addresses:
        lines.append("No member has an address yet: enough for a pilot, not for real sites.")
    return [*lines, f"Hash: {made.hash}"]


def _range(thing: Any) -> str:
    return f"{thing.low:g} to {thing.high:g} {thing.unit}".rstrip()


@federation.command()
def pilot(
    fed: Fed,
    out: Annotated[Path, typer.Option(help="New folder for the folders of all sites.")],
    data: Annotated[
        Path | None, typer.Option(help="CSV or Parquet file with the rows of all nodes, to split.")
    ] = None,
    node: Annotated[str | None, typer.Option(help="Its column with the node ids.")] = None,
    port: Annotated[int, typer.Option(min=0, help="First port; 0: free ones.")] = 7450,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the folders of all sites at once, for a trial on one machine."""
    with input_errors():
        need_cryptography()
        from nefele.runs.folder import check_writable
        from nefele.sites.federation import Federation
        from nefele.sites.pilot import make_pilot

        check_writable(out)
        trial, notes = make_pilot(Federation.read(fed), out, data, node, port)
    for note in notes:
        teller(quiet)(note)
    warning = (
        "This is a trial: all keys were made in one place, by an authority of its own. Never use "
        "them for real sites."
    )
    if json:
        print_json({"folder": str(out), **summary(trial), "notes": [warning, *notes]})
        return
    say(warning)
    if not quiet:
        say(f"Wrote {out}: {len(trial.members)} sites on this machine. Hash: {trial.hash}")
        first = out / trial.members[0].name
        say(f"See what would leave a site: nefele site check {first}")
        say(
            "Run each, in a terminal of its own: "
            f"nefele site run {first} --accept {trial.hash[:16]}"
        )


@federation.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the demo.")] = Path("nefele-demo-federation"),
    json: Json = False,
    quiet: Quiet = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a finished demo in the folder.")
    ] = False,
) -> None:
    """Run five sites as five processes on this machine, and kill one on the way.

    48 US states belong to five sites with keys and certificates of their own, which learn together
    over TLS. One is killed and restarted; in the end all is compared with one process. The exit
    code is 0 only when all is equal.
    """
    with input_errors():
        _need_all()
        from nefele.runs.folder import check_writable
        from nefele.runs.names import check_file_name
        from nefele.sites.demo import run_demo
        from nefele.sites.demo_page import conclusions

        check_file_name(out)
        check_writable(out)
        told: dict[str, Any] = {} if quiet or json else {"tell": partial(say, err=True)}
        facts = run_demo(out, force=force, **told)
    if json:
        print_json({key: value for key, value in facts.items() if key != "trace"})
    else:
        for line in conclusions(facts):
            say(line)
        for name, one in facts["sites"].items():
            say(f"  {name}: {one['messages_sent']:,} messages, {one['payload_bytes']:,} bytes sent")
        say("All is equal." if facts["equal"] else "NOT all is equal.")
        if not quiet:
            say(f"Page: {facts['page']}")
    raise typer.Exit(0 if facts["equal"] else 1)


def summary(made: Federation) -> dict[str, Any]:
    """A federation in plain values, for JSON."""
    return {
        "name": made.name,
        "hash": made.hash,
        "method": made.method,
        "nodes": len(made.owner),
        "edges": len(made.edges),
        "members": {
            member.name: {
                "nodes": list(member.nodes),
                "kind": member.kind,
                "address": member.address,
                "neighbours": made.neighbours(member.name),
            }
            for member in made.members
        },
    }


def read_request(path: Path) -> bytes:
    """The bytes of a small file that someone sent."""
    if not path.is_file():
        raise ValueError(f"No file {str(path)!r}.")
    with path.open("rb") as file:
        content = file.read(2**16 + 1)
    if len(content) > 2**16:
        raise ValueError(f"{str(path)!r} must have at most 64 kB; it has more. Is it this one?")
    return content


def _need_all() -> None:
    """A ValueError that names the packages of sites which are not there."""
    from importlib.util import find_spec

    names = {"cryptography": "cryptography", "nacl": "PyNaCl", "zenoh": "eclipse-zenoh"}
    lost = [name for module, name in names.items() if find_spec(module) is None]
    if lost:
        raise ValueError(
            f"The demo needs {', '.join(lost)}, which must be installed: "
            'pip install "nefele[sites]".'
        )


def need_cryptography() -> None:
    """A ValueError when the package for keys is not there."""
    from importlib.util import find_spec

    if find_spec("cryptography") is None:
        raise ValueError('Sites need cryptography. Use pip install "nefele[sites]".')
