#!/usr/bin/env python3
"""Sends the metrics of a run to Weights & Biases or MLflow while it trains.

    python3 track_metrics.py wandb runs/grpo --project troupe
    python3 track_metrics.py mlflow runs/grpo --project troupe

Reads RUN/metrics.jsonl, one JSON object a line with its "step", and RUN/config.yaml. Continues until Ctrl-C; with --once it sends
what is there and ends. A run that resumes removes the lines after its checkpoint: steps that were sent are not sent again.
"""
import argparse
import json
import math
import pathlib
import time


def lines_of(path, follow, interval):
    """Yields the complete lines of a file; with `follow`, also those that are written later."""
    position = 0
    while True:
        if path.exists():
            if path.stat().st_size < position:  # the run has resumed
                position = 0
            with open(path, "rb") as file:
                file.seek(position)
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # being written
                    position += len(line)
                    yield line
        if not follow:
            return
        time.sleep(interval)


def steps_of(lines):
    """Yields (step, {name: number}) for each step once, in order."""
    last = -1
    for line in lines:
        values = json.loads(line)
        step = values.pop("step", None)
        if not isinstance(step, int) or step <= last:
            continue
        last = step
        yield step, {
            name: value for name, value in values.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        }


def to_wandb(run, project, config, steps):
    import wandb

    with wandb.init(project=project, name=run.name, id=run.name, resume="allow", config={"config.yaml": config}) as session:
        for step, values in steps:
            session.log(values, step=step)


def to_mlflow(run, project, config, steps):
    import mlflow

    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=run.name):
        mlflow.log_text(config, "config.yaml")
        for step, values in steps:
            mlflow.log_metrics(values, step=step)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("to", choices=["wandb", "mlflow"])
    parser.add_argument("run", type=pathlib.Path, help="the run's output directory")
    parser.add_argument("--project", default="troupe", help="project (wandb) or experiment (mlflow)")
    parser.add_argument("--once", action="store_true", help="send what is there and end")
    parser.add_argument("--interval", type=float, default=2, help="seconds between two looks at the file")
    options = parser.parse_args()
    settings = options.run / "config.yaml"
    config = settings.read_text() if settings.exists() else ""
    steps = steps_of(lines_of(options.run / "metrics.jsonl", not options.once, options.interval))
    send = {"wandb": to_wandb, "mlflow": to_mlflow}[options.to]
    try:
        send(options.run.resolve(), options.project, config, steps)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
