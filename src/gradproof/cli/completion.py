"""`gradproof completion`: the script that teaches a shell to complete our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, /, shell: str) -> None:
    """Print the completion script of a shell, to be read by it at its start.

    \b
    gradproof completion bash >> ~/.bashrc
    gradproof completion zsh >> ~/.zshrc
    gradproof completion fish > ~/.config/fish/completions/gradproof.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(context.find_root().command, {}, "gradproof", "_GRADPROOF_COMPLETE").source())
