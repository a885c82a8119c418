"""The command that runs the tests of specs."""

from typer.testing import CliRunner

from assay.cli.main import app


def run(*arguments):
    """Run the command; return its exit code and what it printed on each stream."""
    ran = CliRunner().invoke(app, ["test", *arguments])
    return ran.exit_code, ran.stdout, ran.stderr
