"""``assay serve``: rewards over HTTP."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.app import command, import_checks, import_modules, takes, to_stderr
from assay.errors import UsageError, shown_path
from assay.options import STRICT_HELP, FileOptions

_THREADS = "POLARS_MAX_THREADS"
"""Variable with the number of Polars' threads: for batches of tens of rows, to share the work takes longer than the work."""

_TOKEN = "ASSAY_TOKEN"  # noqa: S105  (the name of a variable)


@command()
@takes(FileOptions, "any_role", "modules", "checks")
def serve(
    specs: Annotated[list[str], typer.Argument(help="Verifier files.")],
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond this machine only with a token.")
    ] = "127.0.0.1",
    token_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help=f"File with the token that requests must bring; by default ${_TOKEN}, if it is set."
        ),
    ] = None,
    unscored: Annotated[
        float, typer.Option(help="Reward of an unscored query in /get_reward, which takes numbers only.")
    ] = 0.0,
    max_body: Annotated[int, typer.Option(min=1, metavar="MB", help="Maximum size of a request.")] = 32,
    max_values: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Maximum JSON values in a request; a larger one may have one for every 32 bytes."
        ),
    ] = 100_000,
    max_waiting: Annotated[
        int, typer.Option(min=1, metavar="ROWS", help="Maximum rows that wait to be scored; a request beyond gets 503.")
    ] = 20_000,
    strict: Annotated[bool, typer.Option(help=STRICT_HELP)] = True,
    **options: Any,
) -> None:
    """Serve rewards over HTTP: POST rows to /reward, or OpenRLHF's queries to /get_reward; /health and /metrics."""
    os.environ.setdefault(_THREADS, "1")  # before Polars is imported
    from assay.adapters import reward_server
    from assay.scoring.batching import plan_of

    import_modules(options.pop("modules"))
    token = _token(token_file)
    checks = import_checks(options.pop("checks"))
    plan = plan_of(specs, checks=checks, strict=strict, **options)
    limits = reward_server.ServerLimits(body=max_body * 1_000_000, values=max_values, rows=max_waiting)
    app = reward_server.reward_app(plan, token=token, unscored=unscored, limits=limits)

    def tell(address: str) -> None:
        message = f"serving {', '.join(map(shown_path, specs))} on {address}"
        to_stderr().print(message, markup=False, highlight=False, soft_wrap=True)

    reward_server.serve(app, host=host, port=port, token=token, tell=tell)


def _token(path: str | None) -> str | None:
    if path is None:
        return os.environ.get(_TOKEN) or None
    try:
        token = Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"--token-file {path}: {getattr(error, 'strerror', None) or error}.") from None
    if not token:
        raise UsageError(f"--token-file {path}: the file is empty.")
    return token
