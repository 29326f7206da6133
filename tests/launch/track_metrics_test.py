"""launch/examples/track_metrics.py with modules that record instead of wandb and mlflow."""
import contextlib
import importlib.util
import os
import pathlib
import sys
import tempfile
import types
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "launch/examples/track_metrics.py"
spec = importlib.util.spec_from_file_location("track_metrics", SCRIPT)
track_metrics = importlib.util.module_from_spec(spec)
spec.loader.exec_module(track_metrics)


class TrackMetrics(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = os.path.join(folder.name, "first-run")
        os.mkdir(self.run_folder)
        self.metrics = os.path.join(self.run_folder, "metrics.jsonl")
        with open(os.path.join(self.run_folder, "config.yaml"), "w", encoding="utf-8") as file:
            file.write("algorithm: sft\n")
        self.sent = []
        self.opened = {}

    def put(self, text, mode="a"):
        with open(self.metrics, mode, encoding="utf-8") as file:
            file.write(text)

    def fake_wandb(self):
        @contextlib.contextmanager
        def init(**options):
            self.opened = options
            yield types.SimpleNamespace(log=lambda values, step: self.sent.append((step, values)))

        return types.SimpleNamespace(init=init)

    def fake_mlflow(self):
        @contextlib.contextmanager
        def start_run(run_name):
            self.opened["name"] = run_name
            yield

        return types.SimpleNamespace(
            set_experiment=lambda name: self.opened.update(project=name),
            start_run=start_run,
            log_text=lambda text, file: self.opened.update({file: text}),
            log_metrics=lambda values, step: self.sent.append((step, values)))

    def track(self, tool, *more):
        module = self.fake_wandb() if tool == "wandb" else self.fake_mlflow()
        before, arguments = sys.modules.get(tool), sys.argv
        sys.modules[tool] = module
        sys.argv = ["track_metrics.py", tool, self.run_folder, *more]
        try:
            track_metrics.main()
        finally:
            sys.argv = arguments
            sys.modules.pop(tool)
            if before:
                sys.modules[tool] = before

    def test_sends_each_number_of_each_complete_line(self):
        self.put('{"step":1,"loss":2.5,"eval/loss":null,"note":"x","done":true}\n{"step":2,"loss":2.25}\n{"step":3,"lo')
        for tool in ("wandb", "mlflow"):
            self.sent.clear()
            self.track(tool, "--once", "--project", "p")
            self.assertEqual(self.sent, [(1, {"loss": 2.5}), (2, {"loss": 2.25})])
            self.assertEqual(self.opened["name"], "first-run")
            self.assertEqual(self.opened["project"], "p")
        self.assertEqual(self.opened["config.yaml"], "algorithm: sft\n")

    def test_follows_the_run_over_a_resume_until_it_is_interrupted(self):
        later = [
            lambda: self.put('{"step":1,"loss":4}\n{"step":2,"loss":3}\n{"step":3,"lo'),
            lambda: self.put('ss":2}\n'),
            lambda: self.put('{"step":1,"loss":4}\n{"step":2,"loss":3}\n', mode="w"),  # resumed from step 2
            lambda: self.put('{"step":3,"loss":2}\n{"step":4,"loss":1}\n'),
        ]

        def sleep(_):
            if not later:
                raise KeyboardInterrupt
            later.pop(0)()

        before, track_metrics.time.sleep = track_metrics.time.sleep, sleep
        try:
            self.track("wandb")
        finally:
            track_metrics.time.sleep = before
        self.assertEqual([step for step, _ in self.sent], [1, 2, 3, 4])


if __name__ == "__main__":
    unittest.main()
