"""A panel's run: bounded calls at the same time, a file that a killed run goes on from, and a stop that stops."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from anima.authenticity.analysis import Analysis
from anima.checks import require_instance, require_int, require_number, show
from anima.errors import InputError
from anima.jsonl import JsonlFile, JsonlReader
from anima.judge.panel import Judgement, Panel
from anima.judge.prompt import NotesLang, judge_request
from anima.judge.request import Options
from anima.judge.resolve import Judge, get_judge, give_verdict, judge_name
from anima.judge.rules import rules_hash
from anima.locks import locked
from anima.stats import json_ready

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from anima.judge.client import Client, Stream
    from anima.judge.request import Completion, Request


def judge_panel(
    analyses: Mapping[str, Analysis] | Sequence[Analysis],
    judges: str | Judge | Sequence[str | Judge] | Mapping[str, str | Judge],
    *,
    repeats: int = 1,
    path: str | os.PathLike[str] | None = None,
    workers: int = 4,
    lang: NotesLang = "en",
    options: Options | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
    progress: bool = True,
) -> Panel:
    """Let judges judge every reply, several times if wanted.

    Parameters
    ----------
    analyses
        From :func:`anima.analyze_many`; as a mapping with ids, else numbered from "0".
    judges
        One or several; see :func:`~anima.judge.get_judge`. As a mapping with names, else named by their models. The rules
        cannot sit among language models: their scores would pass for a model's.
    repeats
        Judgements by each judge of each reply. Each has a seed of its own (``options.seed`` + number of the repeat). At
        temperature 0, the default, they still come out much alike: measure the spread at the temperature you use.
    path
        JSON-lines file of the run, one line per judgement, written when it is there. A run of the same call that was killed
        goes on where it stopped; calls to which no answer came are made again. What has changed (reply, prompt, model's
        name, options) is judged anew.
    workers
        Calls at the same time; more than the server takes at once only wait there.
    lang, options
        As for :func:`~anima.judge.judge_analysis`.
    prices
        US dollars per million prompt and output tokens, by judge.
    progress
        Whether to show a bar.

    Notes
    -----
    An interrupt cancels the calls that run. Two processes on one file wait for each other. Proof:
    ``test_a_killed_run_goes_on_where_it_stopped``.
    """
    items = dict(analyses) if isinstance(analyses, Mapping) else {str(i): one for i, one in enumerate(analyses)}
    if not items:
        raise InputError("analyses is empty: there is nothing to judge")
    for name, analysis in items.items():
        require_instance(analysis, f"analyses[{name!r}]", Analysis)
        if not isinstance(name, str):
            raise InputError(f"analyses has the id {show(name)}: ids must be str")
    panel = _named(judges)
    require_int(repeats, "repeats", low=1)
    require_int(workers, "workers", low=1)
    costs = _prices(prices or {}, panel)
    options = options or Options()
    tasks = [
        _Task(name, analysis, judge, found, repeat, _seeded(options, repeat), lang)
        for name, analysis in items.items()
        for judge, found in panel.items()
        for repeat in range(repeats)
    ]
    found = _run(tasks, None if path is None else JsonlFile(path), workers, progress=progress)
    return Panel(tuple(found[task.key] for task in tasks), tuple(items), tuple(panel), repeats, costs)


@dataclass(frozen=True)
class _Task:
    item_id: str
    analysis: Analysis
    name: str
    judge: Judge
    repeat: int
    options: Options
    lang: NotesLang

    @cached_property
    def key(self) -> tuple[str, str, int, str]:
        given: list[Any]
        if self.judge == "rules":
            given = ["rules", rules_hash(), self.lang, self.analysis.response, self.analysis.question]
            given.append([self.analysis.chain, [hit.marker_id for hit in self.analysis.markers]])
        elif self.analysis.steps:
            request = judge_request(self.analysis, lang=self.lang, options=self.options)
            given = [judge_name(self.judge), request.system, request.prompt, request.schema, self.options.to_dict()]
        else:
            given = [judge_name(self.judge), self.analysis.response]
        text = json.dumps(json_ready(given), sort_keys=True)
        return self.item_id, self.name, self.repeat, hashlib.sha256(text.encode()).hexdigest()[:32]

    def do(self, live: _Live) -> Judgement:
        judge = self.judge if isinstance(self.judge, str) else cast("Client", _Stoppable(self.judge, live))
        return Judgement(*self.key, give_verdict(self.analysis, judge, lang=self.lang, options=self.options))


class _Live:
    """The calls that run, so that an interrupt can end them."""

    def __init__(self) -> None:
        self.streams: set[Stream] = set()
        self.lock = threading.Lock()
        self.stopped = False

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            for pieces in self.streams:
                pieces.cancel()


class _Stoppable:
    """A client as :func:`~anima.judge.ask.judge_analysis` uses it, whose calls can be ended together."""

    def __init__(self, client: Client, live: _Live) -> None:
        self.model, self.stream, self._live = client.model, client.stream, live

    def complete(self, request: Request) -> Completion:
        live = self._live
        with self.stream(request) as pieces:
            with live.lock:
                live.streams.add(pieces)
                if live.stopped:
                    pieces.cancel()
            try:
                for _ in pieces:
                    pass
                return pieces.completion
            finally:
                with live.lock:
                    live.streams.discard(pieces)


_Key = tuple[str, str, int, str]


def _run(tasks: list[_Task], file: JsonlFile | None, workers: int, *, progress: bool) -> dict[_Key, Judgement]:
    from tqdm.auto import tqdm

    if file is not None:
        file.path.parent.mkdir(parents=True, exist_ok=True)
    # The lock of the whole run is another than that of each line, which readers may want meanwhile.
    with nullcontext() if file is None else locked(file.path.with_name(file.path.name + ".run")):
        found = _done(file)
        todo = [task for task in tasks if task.key not in found]
        bar = tqdm(total=len(tasks), initial=len(tasks) - len(todo), desc="judging", unit="reply", disable=not progress)
        with bar:
            for judgement in _judged(todo, workers):
                if file is not None:
                    file.append(judgement.to_dict())
                found[judgement.key] = judgement
                bar.update()
    return found


def _done(file: JsonlFile | None) -> dict[_Key, Judgement]:
    lines = [] if file is None else JsonlReader(file, Judgement.from_line).refresh()[1]
    return {one.key: one for _, one in lines if not one.failed}


def _judged(tasks: list[_Task], workers: int) -> Iterator[Judgement]:
    live = _Live()
    waiting = iter(tasks)
    with ThreadPoolExecutor(workers, thread_name_prefix="anima-judge") as pool:
        running: set[Future[Judgement]] = set()
        try:
            while True:
                # Few are handed out ahead, so that a run of many holds few at a time.
                while len(running) < 2 * workers and (task := next(waiting, None)):
                    running.add(pool.submit(task.do, live))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            for future in running:
                future.cancel()
            live.stop()


def _named(judges: str | Judge | Sequence[str | Judge] | Mapping[str, str | Judge]) -> dict[str, Judge]:
    if isinstance(judges, Mapping):
        panel = {name: get_judge(one) for name, one in judges.items()}
    else:
        listed = list(judges) if isinstance(judges, Sequence) and not isinstance(judges, str) else [judges]
        found = [get_judge(one) for one in listed]
        panel = {judge_name(one): one for one in found}
        if len(panel) < len(found):
            raise InputError("judges holds two of one name: give a mapping from names of your own to judges")
    if not panel:
        raise InputError('judges is empty: name one, e.g. "ollama:qwen3:14b"')
    if len(panel) > 1 and "rules" in panel.values():
        raise InputError("the rules are no language model and cannot sit on a panel with others: let them judge alone")
    if "rules" in panel and panel["rules"] != "rules":
        raise InputError('only the rules may be named "rules": give the other judge another name')
    return {"rules": judge} if (judge := next(iter(panel.values()))) == "rules" else panel


def _prices(prices: Mapping[str, tuple[float, float]], panel: Mapping[str, Judge]) -> dict[str, tuple[float, float]]:
    if unknown := prices.keys() - panel.keys():
        raise InputError(f"prices names {', '.join(map(repr, sorted(unknown)))}, which is no judge of this panel")
    return {
        name: (
            require_number(pair[0], f"prices[{name!r}][0]", low=0),
            require_number(pair[1], f"prices[{name!r}][1]", low=0),
        )
        for name, pair in prices.items()
    }


def _seeded(options: Options, repeat: int) -> Options:
    return options if options.seed is None else replace(options, seed=options.seed + repeat)
