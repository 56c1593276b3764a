"""`wsigym table`: the results of runs, as the paper tables them, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wsigym.errors import InvalidArgumentError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console_for_tables", "table"]

PIPED_WIDTH = 120
"""Characters a line where the output is no terminal."""

BUDGET_TABLES = ("budgets", "evidence_shown")
"""What --budgets asks for: of items the budget is how much evidence is shown."""


def table(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders that `wsigym run` or `sweep` wrote.")],
    by: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Rows by organ, magnification, patient, slide, split or another group."),
    ] = None,
    causes: Annotated[bool, typer.Option("--causes", help="What went wrong, and what the looks had seen.")] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Whether the stated confidence knows which answers are right.")
    ] = False,
    budgets: Annotated[
        bool, typer.Option("--budgets", help="Score against the budget; of items, against the evidence shown.")
    ] = False,
    published: Annotated[bool, typer.Option("--published", help="The paper's figures beside these.")] = False,
    cost: Annotated[
        bool, typer.Option("--cost", help="Tokens, USD and seconds of agents; shown by itself where agents played.")
    ] = False,
    deployment: Annotated[
        bool,
        typer.Option("--deployment", help="Local, hybrid and external set-ups: latency, price, and what left."),
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="One row a policy across the runs' tasks of evipath, and nothing else.")
    ] = False,
    refusals: Annotated[
        bool, typer.Option("--refusals", help="Who declines, and where, across the runs' tasks of pathview alone.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Every policy minus this one: same queries or slides, same budget."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=NAME,NAME",
            help="Only these groups, such as magnification=10,40 or organ=lung; of several fields, those in all.",
        ),
    ] = None,
    common: Annotated[
        bool, typer.Option("--common", help="Only items that every row has a score for; joins runs of different items.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(metavar="PNG", help="Write the budget curve as a picture.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every table as JSON; shares are 0 to 1.")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print one table as CSV: the one asked for, else the main one.")
    ] = False,
) -> None:
    """Tables of one or more runs of a task: scores with 95 % intervals, and what a larger budget brings."""
    from wsigym.benchmarks.agent_tables import cost_table, deployment_table, has_agents
    from wsigym.benchmarks.evipath.profile import profile_table
    from wsigym.benchmarks.pathview.refusals import refusals_table
    from wsigym.benchmarks.reports import find_report
    from wsigym.benchmarks.rows import join_runs
    from wsigym.benchmarks.rows import where as only_where
    from wsigym.benchmarks.run_folder import load_run
    from wsigym.benchmarks.tables import TableOptions, tables_to_json

    asked = [
        name
        for name, wanted in (
            ("against", against is not None), ("causes", causes), ("confidence", confidence), ("budgets", budgets),
            ("published", published), ("cost", cost), ("deployment", deployment),
        )
        if wanted
    ]  # fmt: skip
    if as_csv and (as_json or len(asked) > 1):
        options = ", ".join(f"--{name}" for name in (["json"] if as_json else asked))
        raise InvalidArgumentError(f"--csv prints one table, and was asked for beside {options}; choose one of them.")
    if (profile or refusals) and (asked or by or where or plot or profile == refusals):
        name = "profile" if profile else "refusals"
        raise InvalidArgumentError(f"--{name} shows one table across tasks; ask for others without it.")
    loaded = [load_run(folder, steps=False) for folder in runs]
    if profile:
        tables = [profile_table(loaded, common=common)]
    elif refusals:
        tables = [refusals_table(loaded, common=common)]
    else:
        records = join_runs(loaded, common=common)
        joined = records
        for field, names in _groups_of(where or []).items():
            kept = {record.key for record in only_where(joined, field, names)}
            records = [record for record in records if record.key in kept]
        if not records:
            raise InvalidArgumentError(f"no episode is in all of --where {' --where '.join(where or [])}; name fewer.")
        report = find_report(f"{records[0].suite}/{records[0].task}")
        tables = report.tables(records, TableOptions(by, against, causes, confidence, budgets, published))
        if cost or has_agents(records):
            tables.append(cost_table(records))
        if deployment:
            tables.append(deployment_table(records))
    if plot is not None:
        try:
            report.curve(records).save(plot, format="PNG")
        except OSError as error:
            raise InvalidArgumentError(f"the picture cannot be written: {error}; choose another --plot.") from None
    if as_json:
        typer.echo(tables_to_json(tables))
    elif as_csv:
        name = asked[0] if asked else tables[0].name
        wanted = BUDGET_TABLES if name == "budgets" else (name,)
        typer.echo(next(found for found in tables if found.name in wanted).to_csv(), nl=False)
    else:
        console = console_for_tables()
        for number, found in enumerate(tables):
            if number:
                console.print()
            console.print(found.to_rich(console.width))


def _groups_of(where: Sequence[str]) -> dict[str, list[str]]:
    """The names of each field of --where."""
    groups: dict[str, list[str]] = {}
    for text in where:
        field, equals, names = (part.strip() for part in text.partition("="))
        if not equals:
            raise InvalidArgumentError(f"--where {text}: allowed is FIELD=NAME or FIELD=NAME,NAME; give {text}=NAME.")
        if field in groups:
            raise InvalidArgumentError(
                f"--where names {field} twice; give it once: {field}={','.join(groups[field])},{names}."
            )
        groups[field] = [name.strip() for name in names.split(",")]
    return groups


def console_for_tables() -> Console:
    """Where tables are printed: as wide as the terminal, or 120 characters where the output is none."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)
