"""The command line; the only place with Typer and Rich."""
