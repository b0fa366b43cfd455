"""`runnel logs`: application logs that are in a topic."""

import typer

from runnel.cli.log_index import INDEX_EXAMPLES, index
from runnel.cli.log_search import SEARCH_EXAMPLES, search
from runnel.cli.log_tail import TAIL_EXAMPLES, tail

app = typer.Typer(
    help="Watch and search application logs that are in a topic: tail, search, index.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command(epilog=TAIL_EXAMPLES)(tail)
app.command(epilog=SEARCH_EXAMPLES)(search)
app.command(epilog=INDEX_EXAMPLES)(index)
