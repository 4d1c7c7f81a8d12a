"""A suite with a progress bar over all its rows on standard error."""

from collections.abc import Mapping

from rich.progress import Progress, TaskID

from search_r1.evaluation import vllm_engine
from search_r1.evaluation.suite.run import SuiteRun
from search_r1.evaluation.suite.suite import Logs, Suite
from search_r1.evaluation.watch import progress_bar, tell_how_it_ends


class SuiteBar:
    """Two bars: the row that is being answered, and the whole suite with the time left.

    Args:
        bar: Shows them.
        totals: Questions of each row.
    """

    def __init__(self, bar: Progress, totals: Mapping[str, int]) -> None:
        self._bar = bar
        self._totals = totals
        self._done = dict.fromkeys(totals, 0)
        self._whole = bar.add_task("Whole suite", total=sum(totals.values()))
        self._rows: dict[str, TaskID] = {}

    def show(self, name: str, done: int) -> None:
        """Show that a row has so many answers."""
        self._done[name] = done
        self._bar.update(self._whole, completed=sum(self._done.values()))
        if name not in self._rows:
            self._begin(name)
        self._bar.update(self._rows[name], completed=done)

    def _begin(self, name: str) -> None:
        while self._rows:
            self._bar.remove_task(self._rows.popitem()[1])
        self._rows[name] = self._bar.add_task(name, total=self._totals[name])


def run_suite_watched(suite: Suite, logs: Logs) -> None:
    """Run a suite on vLLM. An error of a question is raised; what is done is kept.

    Raises:
        typer.Exit: the search engine is lost, or the user stopped the run.
    """
    totals = {name: len(one.questions) for name, one in suite.evaluations.items()}
    with tell_how_it_ends(sum(totals.values())), progress_bar() as bar:
        SuiteRun(suite, logs, SuiteBar(bar, totals).show).run(vllm_engine.start_vllm)
