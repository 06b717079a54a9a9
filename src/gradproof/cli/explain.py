"""`gradproof explain`: what a code in a report means."""

from __future__ import annotations

import click

from gradproof.cli.display import console
from gradproof.codes import Code, codes, lookup


@click.command(short_help="Say what a finding or diagnosis means.")
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Say what a code of a finding or a diagnosis means, with an example and its output.

    \b
    gradproof explain            all codes, one line each
    gradproof explain stale
    """
    screen = console()
    if code is None:
        listed = codes()
        width = max(len(one.code) for one in listed)
        for kind in dict.fromkeys(one.kind for one in listed):
            screen.print(f"{kind.plural}:", style="bold")
            for one in listed:
                if one.kind is kind:
                    screen.print(f"  {one.code:<{width}}  {one.meaning}", markup=False)
        return
    for one in lookup(code):
        _print(one)


def _print(code: Code) -> None:
    screen = console()
    if screen.is_terminal:
        from rich.markdown import Markdown

        screen.print(Markdown(code.text))
    else:
        click.echo(code.text)
