"""The server of the rollouts of a run: serve_rollout_test.py PROGRAM SOURCE. The run has the bits of one without a server, and tokens are those
that troupe generate samples from the checkpoint of their version."""
import concurrent.futures
import itertools
import os
import subprocess
import sys
import unittest

from live_run import LiveRun, SMALL, bits, command, folder
from served import run

REQUESTS = 1000
PINNED = {"async.mode": "pinned", "async.eta": 1, "rollout.threads": 1}


def complete(live, seed, port=None, **more):
    body = {"prompt": "4,5,6:S", "max_tokens": 6, "seed": seed, "logprobs": 0, "return_token_ids": True, **more}
    return live.request("/v1/completions", body, port)


class Rollouts(unittest.TestCase):
    def serve(self, output, settings, enough, cluster=None, servers=1):
        """Sends requests while the run trains, until there are enough answers; returns those of the finished run."""
        live = LiveRun(output, settings | {"serve.listen": 0}, cluster, servers)
        numbers, answers = itertools.count(), []

        def client(port):
            while not enough(answers) and live.running():
                seed = next(numbers)
                status, answer = complete(live, seed, port)
                self.assertEqual(status, 200, answer)
                answers.append((seed, answer["choices"][0], live.running()))

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(client, live.ports[i % servers]) for i in range(8)]:
                future.result()
        self.assertEqual(live.wait(), 0, live.lines)
        self.assertTrue(enough(answers), f"the run ended after {len(answers)} requests")
        self.assertTrue(all(running for _, _, running in answers), "the run ended before the requests")
        for _, choice, _ in answers:
            self.assertEqual(len(choice["weight_versions"]), len(choice["token_ids"]))
        return answers

    def test_a_run_keeps_its_bits_while_it_serves_a_thousand_requests(self):
        with folder() as where:
            settings = SMALL | PINNED | {"train.steps": 150}
            alone, live = os.path.join(where, "alone"), os.path.join(where, "live")
            subprocess.run(command(alone, settings), check=True, capture_output=True, timeout=300)
            answers = self.serve(live, settings, lambda found: len(found) >= REQUESTS)
            self.assertEqual(bits(live), bits(alone))
            versions = [choice["weight_versions"] for _, choice, _ in answers]
            self.assertTrue(all(len(set(each)) == 1 for each in versions), "a sequence has two versions")
            self.assertGreater(len({each[0] for each in versions}), 3)

    def test_tokens_are_those_of_the_named_version(self):
        with folder() as where:
            settings = SMALL | {"train.steps": 60, "train.save_every": 1, "train.keep_last": 0, "model_overrides.rope_theta": 3}
            answers = self.serve(os.path.join(where, "run"), settings, lambda found: len({choice["weight_versions"][0] for _, choice, _ in found}) > 4)
            by_version = {choice["weight_versions"][0]: (seed, choice) for seed, choice, _ in answers}
            for version, (seed, choice) in sorted(by_version.items()):
                model = [os.path.join(where, f"run/checkpoint-{version}")] if version else [SMALL["model"], "model_overrides.rope_theta=3"]
                expected = run(["generate", "--model", *model], {"prompt": "4,5,6:S", "max_tokens": 6, "seed": seed, "temperature": 1})
                self.assertEqual(choice["token_ids"], expected[0]["ids"], version)
                self.assertEqual(choice["logprobs"]["token_logprobs"], expected[0]["logprobs"], version)

    def test_every_rollout_of_a_cluster_serves(self):
        with folder() as where:
            cluster = os.path.join(where, "cluster.yaml")
            with open(cluster, "w", encoding="utf-8") as file:
                file.write("groups: [{role: policy}, {role: rollout, count: 2}, {role: verifier}]\n")
            settings = SMALL | {"train.steps": 40}
            alone, live = os.path.join(where, "alone"), os.path.join(where, "live")
            subprocess.run(command(alone, settings), check=True, capture_output=True, timeout=300)
            self.serve(live, settings, lambda found: len(found) >= 60, cluster, 2)
            self.assertEqual(bits(live), bits(alone))

    def test_with_free_a_sequence_continues_with_new_weights(self):
        with folder() as where:
            settings = SMALL | PINNED | {"async.mode": "free", "train.steps": 60}
            live = LiveRun(os.path.join(where, "run"), settings | {"serve.listen": 0})
            status, answer = complete(live, 1, max_tokens=600, ignore_eos=True)
            self.assertEqual(status, 200, answer)
            versions = answer["choices"][0]["weight_versions"]
            self.assertEqual(versions, sorted(versions))
            self.assertGreater(len(set(versions)), 1)
            self.assertEqual(live.wait(), 0, live.lines)

    def test_requests_beyond_the_queue_get_429(self):
        with folder() as where:
            limits = {"serve.max_batch": 1, "serve.max_waiting": 1}
            live = LiveRun(os.path.join(where, "run"), SMALL | limits | {"serve.listen": 0, "train.steps": 60})
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                found = [each.result()[0] for each in [pool.submit(complete, live, seed, None, max_tokens=200, ignore_eos=True) for seed in range(16)]]
            self.assertEqual(set(found), {200, 429})
            self.assertEqual(live.wait(), 0, live.lines)

    def test_who_may_connect(self):
        with folder() as where:
            refused = subprocess.run(command(os.path.join(where, "open"), SMALL | {"serve.listen": "0.0.0.0:0"}), capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn('serve.listen = "0.0.0.0:0": --host 0.0.0.0 can be reached from other hosts', refused.stderr)
            keys = os.path.join(where, "keys")
            with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
                file.write("a-key-of-this-test\n")
            live = LiveRun(os.path.join(where, "run"), SMALL | {"serve.listen": 0, "serve.api_key_file": keys, "train.steps": 40})
            self.assertEqual(complete(live, 1)[0], 401)
            self.assertEqual(live.wait(), 0, live.lines)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
