"""Small experiments for the tests of the runner: worker processes import them from here."""

import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from threadpoolctl import threadpool_info

from muhat._arrays import share_between_cores
from paper import Experiment, reproduce


def toy(log, **changes):
    """Many short tasks; each notes in the log that it was computed."""
    return Experiment(
        name="toy",
        title="A toy",
        text="",
        settings=partial(settings, str(log), changes),
        tasks=tasks,
        run=run,
        table=table,
        figure=no_figure,
    )


def no_figure(results):
    return None


def squares():
    """A whole experiment, small: what somebody writes who adds one."""
    return Experiment(
        name="squares",
        title="squares of numbers",
        text="Numbers and their squares.",
        settings=three,
        tasks=tasks,
        run=square,
        figure=line,
    )


def square(settings, task):
    return [{"x": task["number"], "y": task["number"] ** 2}]


def line(results):
    figure = Figure()
    figure.subplots().plot([row["x"] for row in results.rows], [row["y"] for row in results.rows])
    return figure


def settings(log, changes, quick):
    return {
        "seed": 7,
        "count": 6 if quick else 40,
        "seconds": 0.025,
        "log": log,
        "fails": None,
        **changes,
    }


def tasks(settings):
    return [{"number": number, "n": 10 + number} for number in range(settings["count"])]


def run(settings, task):
    random = np.random.default_rng([settings["seed"], task["number"]])
    time.sleep(settings["seconds"] * (0.5 + random.random()))
    if (
        task["number"] == settings["fails"]
        and not Path(settings["log"]).with_name("repaired").exists()
    ):
        raise AwkwardError("no", "luck")
    with open(settings["log"], "a") as log:
        log.write(f"{task['number']}\n")
    X = random.normal(size=(task["n"], 5))
    return [{"n": task["n"], "spectrum": np.linalg.eigvalsh(X @ X.T)}]


def table(settings, results):
    raw = [row for rows in results for row in rows]
    return [
        {"n": row["n"], "largest": max(row["spectrum"]), "trace": sum(row["spectrum"])}
        for row in raw
    ]


class AwkwardError(Exception):
    """One that does not survive the way from one process to another."""

    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def conditions():
    """What workers find around them."""
    return Experiment(
        name="conditions",
        title="Workers",
        text="",
        settings=three,
        tasks=tasks,
        run=look_around,
        table=first_rows,
        figure=no_figure,
        alone=True,
    )


def three(quick):
    return {"count": 3}


def look_around(settings, task):
    threads, start = set(), time.perf_counter()
    share_between_cores(lambda _: threads.add(threading.get_ident()) or time.sleep(0.01), range(8))
    blas = max(library["num_threads"] for library in threadpool_info())
    data = os.environ.get("MUHAT_DATA")
    interval = {"start": start, "end": time.perf_counter()}
    return [
        {"process": os.getpid(), "threads": len(threads), "blas": blas, "data": data, **interval}
    ]


def first_rows(settings, results):
    return [rows[0] for rows in results]


def deadly():
    """A task whose process is ended from outside."""
    return Experiment(
        name="deadly", title="", text="", settings=three, tasks=tasks, run=die, figure=no_figure
    )


def die(settings, task):
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder, log):
    """Run the toy as a command does."""
    try:
        reproduce([toy(log)], folder, n_jobs=2)
    except KeyboardInterrupt:
        sys.exit(130)
