"""`nefele site`: a member of a federation asks for its certificate, joins, and runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nefele.cli._common import Json, Quiet, input_errors, print_json, say
from nefele.cli._site_words import ended, line, refusals, shown
from nefele.cli.federation import need_cryptography, read_request

site = typer.Typer(
    no_args_is_help=True,
    help="One site of a federation, beside its data: ask for a certificate, join, run.",
)


@site.command()
def request(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of the member; with --renew a site's folder."),
    ],
    federation: Annotated[
        Path | None, typer.Option(help="federation.toml that all members agreed to.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the site.")] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="A new key beside the one in use, until it is joined.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a key that never leaves this folder, and a request to send to the federation."""
    with input_errors():
        need_cryptography()
        from nefele.sites.identity import NEXT_REQUEST, REQUEST, fingerprint

        if renew:
            folder, name, content = _renew(name, federation, out)
        else:
            if federation is None or out is None:
                raise ValueError(
                    "A request must have a federation and a folder: nefele site request NAME "
                    "--federation federation.toml --out DIR."
                )
            folder, content = out, _request(name, federation, out)
        file = folder / (NEXT_REQUEST if renew else REQUEST)
        print_ = fingerprint(content)
    if json:
        facts = {"name": name, "folder": str(folder), "request": str(file), "fingerprint": print_}
        print_json(facts)
        return
    say(f"Fingerprint of the request of {name}: {print_}")
    if not quiet:
        say(
            f"Send {file} to the federation, and compare the fingerprint by phone. The key stays "
            f"in {folder}. With the answer: nefele site join {folder} answer-{name}.pem"
        )


def _request(name: str, source: Path, folder: Path) -> bytes:
    from nefele.runs.folder import check_writable
    from nefele.sites.config import FILE as SITE
    from nefele.sites.config import site_template
    from nefele.sites.federation import FILE, Federation
    from nefele.sites.identity import host_names, make_request

    federation = Federation.read(source)
    host_names(federation, name)
    check_writable(folder)
    kept = folder / FILE
    if kept.exists() and kept.read_bytes() != federation.content:
        raise ValueError(
            f"{str(folder)!r} belongs to another federation file. Name another folder by --out."
        )
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(federation.content)
    if not (folder / SITE).exists():
        (folder / SITE).write_bytes(site_template(federation, name).encode())
    return make_request(folder, name)  # last: what was interrupted can be done again


def _renew(given: str, source: Path | None, out: Path | None) -> tuple[Path, str, bytes]:
    """The folder that is renewed, its name, and the new request."""
    from nefele.sites.config import SiteConfig
    from nefele.sites.federation import Federation
    from nefele.sites.identity import host_names, make_request

    folder = Path(given) if out is None else out
    if not folder.is_dir():
        raise ValueError(
            f"No folder {str(folder)!r} of a site. Use nefele site request DIR --renew."
        )
    if source is not None and Federation.read(source).hash != Federation.read(folder).hash:
        raise ValueError(
            f"--federation must be the file that is in {str(folder)!r}; it is another one. Put it "
            "there first, or leave out the option."
        )
    name = SiteConfig.read(folder).name
    if out is not None and given != name:
        raise ValueError(f'{str(folder)!r} must be the site "{given}"; it is "{name}".')
    host_names(Federation.read(folder), name)
    return folder, name, make_request(folder, name, renew=True)


@site.command()
def join(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the site.")],
    answer: Annotated[
        Path, typer.Argument(metavar="ANSWER", help="What nefele federation sign wrote.")
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check the answer to a request, and put the certificate in its place."""
    with input_errors():
        need_cryptography()
        from nefele.sites.identity import CERTIFICATE, days_left, install
        from nefele.sites.validity import end_day, one_certificate

        if not folder.is_dir():
            raise ValueError(f"No folder {str(folder)!r}. Make one by: nefele site request")
        name = install(folder, read_request(answer))
        certificate = (folder / CERTIFICATE).read_bytes()
        left, until = days_left(certificate), end_day(one_certificate(certificate, CERTIFICATE))
    if json:
        print_json({"name": name, "until": until, "days": round(left, 3)})
    elif not quiet:
        say(f"{name} has joined: its certificate is valid for {round(left)} days, until {until}.")
        say(f"Fill in {folder / 'site.toml'}.")


SiteArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the site.")]
RunName = Annotated[
    str, typer.Option("--run", help="Name of the run, the same at all members; letters, digits.")
]


@site.command()
def check(folder: SiteArgument, json: Json = False) -> None:
    """Say in plain words what would leave this site, what is agreed, and the hash.

    The rows and certificates are checked, too. Nothing is sent.
    """
    with input_errors():
        need_cryptography()
        from dataclasses import asdict

        from nefele.sites.identity import expiry_message
        from nefele.sites.models import maker
        from nefele.sites.site import Site

        found = Site(folder)
        consent, rows = found.consent(), found.rows()
        identity = found.identity()
        name, soon = identity.name, expiry_message(identity.certificate, folder)
        if found.config.model is not None:
            maker(found.config.model)  # an error when it cannot be made
    if json:
        items = [asdict(item) for item in consent.items]
        print_json({"name": name, "hash": found.federation.hash, "items": items})
        return
    for text in consent.text().splitlines():
        say(text)
    if soon:
        say(f"Note: {soon}")
    say(f"Rows here: {len(rows.y)}, all within the agreed bounds.")
    say(f"If you agree: nefele site run {folder} --accept {found.federation.hash}")


@site.command("run")
def run_site(
    folder: SiteArgument,
    accept: Annotated[
        str | None, typer.Option(help="The hash that nefele site check shows: you agree to it.")
    ] = None,
    run: RunName = "1",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take part in a run, or go on with one that was stopped: the end is the same.

    It waits for the neighbours, learns with them, and leaves model.nefele, metrics.csv, ledger.csv
    and report.html in the folder of the run.
    """
    with input_errors():
        need_cryptography()
        from nefele.cli._common import teller
        from nefele.sites.carriers.zenoh_session import use_one_thread
        from nefele.sites.consent import ConsentError
        from nefele.sites.peers import BrokenLinkError
        from nefele.sites.site import Site

        member = Site(folder, accept=accept, run=run)
        facts = member.finished()
        if facts is not None and not quiet:
            say(f"This run was finished before ({facts['finished']}).", err=True)
        use_one_thread()
        try:
            facts = facts or member.run(teller(quiet), shown(quiet or json)).facts
        except (BrokenLinkError, ConsentError) as error:
            raise ValueError(str(error)) from None
    if json:
        print_json({**facts, "folder": str(member.run_folder)})
    else:
        for text in ended(facts, member.run_folder):
            say(text)
    raise typer.Exit(0 if facts["converged"] else 1)


@site.command()
def status(folder: SiteArgument, run: RunName = "1", json: Json = False) -> None:
    """Say how a run is going, from another terminal: round, gap, rate, bytes, who is late."""
    with input_errors():
        from nefele.sites.status import read_status

        facts = read_status(folder / f"run-{run}")
    if json:
        print_json(facts)
    else:
        say(line(facts))
        for text in refusals(facts):
            say(text)
        for why, count in facts.get("refused", {}).items():
            say(f"Refused: {why}, {count} times.")
