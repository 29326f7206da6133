"""The agent of docs/agents.md: agent_test.py PROGRAM SOURCE runs it for a few steps, and checks what is trained on and what is refused.
agent_test.py PROGRAM SOURCE learn SEEDS trains it to the end, and compares its rate of success with what the page promises."""
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import types
import unittest
import urllib.error

from live_run import LiveRun, command, folder
from served import DIGITS, PROGRAM, SOURCE, UnixConnection, answer_of, mask_ids

PAGE = os.path.join(SOURCE, "docs/agents.md")
RUN = {"rollout.source": "service", "serve.listen": 0, "train.max_length": 64, "rollout.max_new_tokens": 256, "train.schedule": "constant",
       "train.threads": 1, "train.log_every": 0, "data.shuffle": "false"}


def page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


KEYS = {"agent": "0123456789abcdef0123", "other": "fedcba9876543210fedc"}


def key_file(path, names=("agent",)):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.writelines(f"{name} {KEYS[name]}\n" for name in names)
    return path


def client(url, keys):
    """The program of the page, as a module."""
    source = re.search(r"`client\.py`:\n\n```python\n(.*?)```", page(), re.DOTALL)[1]
    module = types.ModuleType("client")
    exec(compile(source, "client.py", "exec"), module.__dict__)
    sys.argv[1:] = [url, keys]
    return module


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def tasks(count, seed):
    choose = random.Random(seed)
    for _ in range(count):
        a, b = choose.randrange(100), choose.randrange(100)
        yield f"{a},{b}", str(a + b)


def prompts(path, count, seed):
    return write_rows(path, ({"prompt": f"{call}:S", "answer": answer} for call, answer in tasks(count, seed)))


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Agent(unittest.TestCase):
    def setUp(self):
        self.folder = folder()
        self.output = os.path.join(self.folder.name, "run")
        rows = prompts(os.path.join(self.folder.name, "prompts.jsonl"), 40, 1)
        self.keys = key_file(os.path.join(self.folder.name, "keys"))
        self.settings = RUN | {"serve.api_key_file": self.keys, "model": DIGITS, "data.path": rows, "train.batch_size": 2, "grpo.group_size": 4, "train.save_every": 0}
        self.addCleanup(self.folder.cleanup)

    def start(self, **more):
        live = LiveRun(self.output, self.settings | {key.replace("__", "."): value for key, value in more.items()}, key=KEYS["agent"])
        self.addCleanup(lambda: live.running() and live.process.kill())
        return live, client(f"http://127.0.0.1:{live.ports[0]}", self.keys)

    def until_the_run_ends(self, module):
        try:
            module.main()
        except (urllib.error.URLError, ConnectionError):
            pass

    def lease(self, live, wanted=1, port=None, key=None):
        """The samples of at least so many prompts, once they are offered."""
        groups = []
        while len(groups) < wanted:
            status, answer = live.request("/v1/lease", {"groups": 4}, port, key)
            self.assertEqual(status, 200, answer)
            groups += answer["groups"]
        return groups, answer["weight_version"]

    def sample(self, module, sample_id, group):
        episode = module.Episode(sample_id, dict(zip(group["sample_ids"], group["leases"]))[sample_id], group["prompt_token_ids"])
        episode.sample()
        episode.write(":1S")
        episode.sample()
        return episode.body | {"reward": sample_id % 2}

    def test_only_sampled_tokens_are_trained_on(self):
        live, module = self.start(train__steps=3, rollout__record="all")
        asked, outputs, sent = module.post, {}, {}

        def post(path, **body):
            answer = asked(path, **body)
            if path == "/v1/completions":
                choice = answer["choices"][0]
                outputs.setdefault(tuple(body["prompt"]), []).append((choice["token_ids"], choice["logprobs"]["token_logprobs"]))
            if path == "/v1/experience":
                sent[body["sample_id"]] = body
            return answer

        module.post = post
        self.until_the_run_ends(module)
        self.assertEqual(live.wait(), 0, live.lines)
        trained = {line["sample_id"]: line for line in lines_of(os.path.join(self.output, "samples.jsonl"))}
        self.assertEqual(len(trained), 3 * 2 * 4)
        for sample_id, body in sent.items():
            if sample_id not in trained:
                continue  # the run ended before its batch was complete
            ids, mask, at, turns = body["token_ids"], body["loss_mask"], 0, 0
            while 1 in mask[at:]:
                begin = mask.index(1, at)
                at = mask.index(0, begin) if 0 in mask[begin:] else len(mask)
                self.assertIn((ids[begin:at], body["logprobs"][begin:at]), outputs[tuple(ids[:begin])])
                turns += 1
            self.assertEqual(turns, 2)
            line = trained[sample_id]
            self.assertEqual(line["prompt_ids"] + line["ids"], ids)
            self.assertEqual(line["reward"], body["reward"])

    def test_a_sample_is_accepted_once_and_in_time(self):
        live, module = self.start(train__steps=2)
        groups, version = self.lease(live, 2)
        self.assertEqual(version, 0)
        self.assertEqual([len(group["sample_ids"]) for group in groups], [4, 4])
        self.assertEqual(live.request("/v1/lease", {})[1]["groups"], [])
        bodies = [self.sample(module, sample_id, group) for group in groups for sample_id in group["sample_ids"]]
        for body in bodies:
            self.assertEqual(live.request("/v1/experience", body)[0], 200)
            status, answer = live.request("/v1/experience", body)
            self.assertEqual((status, answer["error"]["code"]), (409, "duplicate"))
        groups, version = self.lease(live, 2)
        self.assertEqual(version, 1)
        old = bodies[0] | {"sample_id": groups[0]["sample_ids"][0], "lease": groups[0]["leases"][0]}
        ids, prompt = old["token_ids"], groups[0]["prompt_token_ids"]
        old["token_ids"] = prompt + ids[old["loss_mask"].index(1):]
        for name in ("loss_mask", "logprobs", "weight_versions"):
            old[name] = [0 if name == "loss_mask" else None] * len(prompt) + bodies[0][name][bodies[0]["loss_mask"].index(1):]
        status, answer = live.request("/v1/experience", old)
        self.assertEqual((status, answer["error"]["code"]), (409, "not_sampled_here"))  # it was, after another prompt
        old = self.sample(module, groups[0]["sample_ids"][0], groups[0])
        self.assertEqual(set(old["weight_versions"]) - {None}, {1})
        status, answer = live.request("/v1/experience", bodies[0] | {"sample_id": 10**6})
        self.assertEqual((status, answer["error"]["code"]), (409, "not_offered"))
        status, answer = live.request("/v1/experience", bodies[0] | {"reward": "good"})
        self.assertEqual((status, answer["error"]["param"]), (400, "reward"))
        for group in groups:
            for sample_id in group["sample_ids"]:
                self.assertEqual(live.request("/v1/experience", self.sample(module, sample_id, group))[0], 200)
        self.assertEqual(live.wait(), 0, live.lines)

    def test_a_stopped_run_keeps_what_has_arrived(self):
        live, module = self.start(train__steps=2)
        for part in (None, 5):
            groups, _ = self.lease(live, 2)
            wanted = [(sample_id, group) for group in groups for sample_id in group["sample_ids"]]
            for sample_id, group in wanted[:part]:
                self.assertEqual(live.request("/v1/experience", self.sample(module, sample_id, group))[0], 200)
        live.process.send_signal(signal.SIGTERM)
        self.assertEqual(live.wait(60), 130, live.lines)
        live, module = self.start(train__steps=2)
        groups, version = self.lease(live)
        self.assertEqual(version, 1)
        left = [(sample_id, group) for group in groups for sample_id in group["sample_ids"]]
        self.assertEqual([sample_id for sample_id, _ in left], [sample_id for sample_id, _ in wanted[5:]])
        for sample_id, group in left:
            self.assertEqual(live.request("/v1/experience", self.sample(module, sample_id, group))[0], 200)
        self.assertEqual(live.wait(), 0, live.lines)

    def test_samples_of_a_lease_that_ended_are_leased_again(self):
        live, _ = self.start(train__steps=1, rollout__lease_timeout=1)
        first, _ = self.lease(live, 2)
        again, _ = self.lease(live, 2)
        self.assertEqual([group["sample_ids"] for group in again], [group["sample_ids"] for group in first])
        self.assertFalse({lease for group in again for lease in group["leases"]} & {lease for group in first for lease in group["leases"]})
        live.process.send_signal(signal.SIGTERM)
        self.assertEqual(live.wait(60), 130, live.lines)

    def test_an_agent_may_sample_while_the_policy_trains(self):
        live, module = self.start(train__steps=4, async__mode="free", async__eta=1, rollout__threads=1)
        self.until_the_run_ends(module)
        self.assertEqual(live.wait(), 0, live.lines)
        for line in lines_of(os.path.join(self.output, "metrics.jsonl")):
            self.assertLessEqual(line["staleness/max"], 1)

    def test_each_rollout_of_a_cluster_leases_its_part(self):
        cluster = os.path.join(self.folder.name, "cluster.yaml")
        with open(cluster, "w", encoding="utf-8") as file:
            file.write("groups: [{role: policy}, {role: rollout, count: 2}]\n")
        live = LiveRun(self.output, self.settings | {"train.steps": 2, "rollout.record": "all"}, cluster, 2, key=KEYS["agent"])
        self.addCleanup(lambda: live.running() and live.process.kill())
        module, made = client("", self.keys), [[], []]
        for _ in range(2):
            for part, port in enumerate(live.ports):
                sys.argv[1] = f"http://127.0.0.1:{port}"
                groups, _ = self.lease(live, 1, port)
                for sample_id, group in [(sample_id, group) for group in groups for sample_id in group["sample_ids"]]:
                    self.assertEqual(live.request("/v1/experience", self.sample(module, sample_id, group), port)[0], 200)
                    made[part].append(sample_id)
        self.assertEqual(live.wait(), 0, live.lines)
        self.assertEqual([len(part) for part in made], [8, 8])
        trained = [line["sample_id"] for line in lines_of(os.path.join(self.output, "samples.jsonl"))]
        self.assertEqual(sorted(trained), sorted(made[0] + made[1]))

    def test_the_requests_of_the_page(self):
        live, _ = self.start(train__steps=1)
        found = re.findall(r"curl http://127\.0\.0\.1:8000(/\S+) -H \"Authorization: Bearer \$KEY\" -d '(.*?)'", page(), re.DOTALL)
        self.assertEqual([path for path, _ in found], ["/v1/lease", "/v1/experience"])
        answer = {"groups": []}
        while not answer["groups"]:  # until they are offered
            status, answer = live.request(found[0][0], json.loads(found[0][1]))
            self.assertEqual(status, 200, answer)
        shown = json.loads(re.search(r"```json\n(.*?)```", page(), re.DOTALL)[1])
        self.assertEqual(set(answer), set(shown))
        self.assertEqual(set(answer["groups"][0]), set(shown["groups"][0]))
        body = json.loads(found[1][1])
        self.assertEqual(len({len(body[name]) for name in ("token_ids", "loss_mask", "logprobs", "weight_versions")}), 1)
        body["weight_versions"] = [None if version is None else 0 for version in body["weight_versions"]]
        status, answer = live.request(found[1][0], body)
        self.assertEqual((status, answer["error"]["code"]), (409, "not_offered"), answer)
        live.process.send_signal(signal.SIGTERM)
        self.assertEqual(live.wait(60), 130, live.lines)

    def test_forged_samples_are_refused_and_the_run_continues(self):
        both = key_file(os.path.join(self.folder.name, "both"), KEYS)
        live, module = self.start(train__steps=1, serve__api_key_file=both)
        sys.argv[2] = self.keys  # the client is the agent
        groups, _ = self.lease(live, key=KEYS["other"])
        self.assertEqual(len(groups), 1, "one client takes more than its share")
        stolen = groups[0]
        self.assertEqual(live.request("/v1/lease", {"groups": 1024}, key=KEYS["other"])[1]["groups"], [])
        groups, _ = self.lease(live)
        self.assertEqual(len(groups), 1)
        wanted = [(sample_id, group) for group in groups for sample_id in group["sample_ids"]]
        good = self.sample(module, *wanted[0])
        at = good["loss_mask"].index(1)

        def changed(name, value):
            return good | {name: good[name][:at] + [value] + good[name][at + 1:]}

        for forged, key, expected in [
                (good, KEYS["other"], (409, "not_leased", "lease")),
                (good | {"lease": stolen["leases"][0]}, KEYS["agent"], (409, "not_leased", "lease")),
                (good | {"sample_id": stolen["sample_ids"][0]}, KEYS["agent"], (409, "not_leased", "lease")),
                ({name: value for name, value in good.items() if name != "lease"}, KEYS["agent"], (400, None, "lease")),
                (changed("logprobs", -1e38), KEYS["agent"], (409, "not_sampled_here", f"logprobs[{at}]")),
                (changed("logprobs", -90), KEYS["agent"], (409, "not_sampled_here", f"logprobs[{at}]")),
                (changed("logprobs", good["logprobs"][at] - 1e-3), KEYS["agent"], (409, "not_sampled_here", f"logprobs[{at}]")),
                (good | {"reward": 3e38}, KEYS["agent"], (400, None, "reward"))]:
            status, answer = live.request("/v1/experience", forged, key=key)
            self.assertEqual((status, answer["error"]["code"], answer["error"]["param"]), expected)
        self.assertEqual(live.request("/v1/experience", good)[0], 200)
        for sample_id, group in wanted[1:]:
            self.assertEqual(live.request("/v1/experience", self.sample(module, sample_id, group))[0], 200)
        sys.argv[2] = key_file(os.path.join(self.folder.name, "other"), ["other"])
        for sample_id in stolen["sample_ids"]:
            self.assertEqual(live.request("/v1/experience", self.sample(module, sample_id, stolen), key=KEYS["other"])[0], 200)
        self.assertEqual(live.wait(), 0, live.lines)
        self.assertTrue(any("a sample of client \"agent\" was refused" in line for line in live.lines), live.lines)

    def test_samples_of_a_truncated_distribution_bring_their_masks(self):
        live, module = self.start(train__steps=1, rollout__record="all", rollout__top_k=3, rollout__replay_sampling_mask="on", grpo__recompute_old_logp="true")

        class Masked(module.Episode):
            def add(self, ids, mask, logprobs, versions, masks=None):
                super().add(ids, mask, logprobs, versions)
                self.body.setdefault("sampling_masks", []).extend(masks or [None] * len(ids))

            def sample(self, **more):
                choice = module.post("/v1/completions", prompt=self.body["token_ids"], max_tokens=8, logprobs=0, return_token_ids=True,
                                     return_sampling_mask=True, **more)["choices"][0]
                self.add(choice["token_ids"], 1, choice["sampling_logprobs"], choice["weight_versions"], choice["sampling_mask"])
                return choice["text"]

        module.Episode = Masked
        groups, _ = self.lease(live, 2)
        wanted = [(sample_id, group) for group in groups for sample_id in group["sample_ids"]]
        good = self.sample(module, *wanted[0])
        at = good["loss_mask"].index(1)
        other = good["sampling_masks"][:at] + [""] + good["sampling_masks"][at + 1:]
        cold = Masked(good["sample_id"], good["lease"], wanted[0][1]["prompt_token_ids"])
        cold.sample(temperature=0.5)  # not that of the trainer
        for forged, expected in [({name: value for name, value in good.items() if name != "sampling_masks"}, (400, "sampling_masks")),
                                 (cold.body | {"reward": 1}, (409, f"logprobs[{at}]")),
                                 (good | {"sampling_masks": other}, (409, f"logprobs[{at}]"))]:
            status, answer = live.request("/v1/experience", forged)
            self.assertEqual((status, answer["error"]["param"]), expected)
        sent = {wanted[0][0]: good} | {sample_id: self.sample(module, sample_id, group) for sample_id, group in wanted[1:]}
        for body in sent.values():
            self.assertEqual(live.request("/v1/experience", body)[0], 200)
        self.assertEqual(live.wait(), 0, live.lines)
        for line in lines_of(os.path.join(self.output, "samples.jsonl")):
            body = sent[line["sample_id"]]
            prompt = len(line["prompt_ids"])
            self.assertEqual(line["sampling_masks"], [mask or "" for mask in body["sampling_masks"][prompt:]])
            for token, marked, mask in list(zip(body["token_ids"], body["loss_mask"], body["sampling_masks"]))[prompt:]:
                if marked:
                    self.assertIn(token, mask_ids(mask))
        line = lines_of(os.path.join(self.output, "metrics.jsonl"))[0]
        self.assertEqual(line["sampling/sampling_logp_difference/max"], 0)
        self.assertGreater(line["entropy_whole_vocabulary"], line["entropy"])

    def test_a_socket_of_the_user_needs_no_key(self):
        path = os.path.join(self.folder.name, "socket")
        live = LiveRun(self.output, self.settings | {"train.steps": 1, "serve.api_key_file": "", "serve.listen": f"unix:{path}"})
        self.addCleanup(lambda: live.running() and live.process.kill())
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        module = client("", os.devnull)
        module.post = lambda path_, **body: answer_of(UnixConnection(path), "POST", path_, body)[1]
        sent = 0
        while sent < 8:
            for group in module.post("/v1/lease", groups=4)["groups"]:
                for sample_id in group["sample_ids"]:
                    self.assertEqual(module.post("/v1/experience", **self.sample(module, sample_id, group))["status"], "accepted")
                    sent += 1
        self.assertEqual(live.wait(), 0, live.lines)
        self.assertFalse(os.path.exists(path))

    def test_a_run_that_anybody_could_train_is_refused(self):
        settings = self.settings | {"train.steps": 1, "serve.api_key_file": ""}
        refused = subprocess.run(command(self.output, settings), capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("rollout.source", refused.stderr)
        self.assertIn("serve.api_key_file", refused.stderr)
        self.assertIn("unix:PATH", refused.stderr)
        self.assertFalse(os.path.exists(self.output))


WARM_UP = {"train.steps": 400, "train.batch_size": 64, "train.learning_rate": "2e-3", "train.betas": "[0.9, 0.98]", "train.weight_decay": 0.1, "train.schedule": "linear"}
LEARNING = {"train.steps": 200, "train.batch_size": 16, "train.learning_rate": "2e-4", "grpo.group_size": 8, "grpo.scale_rewards": "none"}


def demonstrations(count, seed):
    """Both turns of each task. The model learns the format from them, but only one in four calls the tool with the right numbers."""
    choose = random.Random(seed)
    for call, _ in tasks(count, seed):
        first = call.split(",")[0]
        made = call if choose.random() < 0.25 else f"{first},{first}"
        answer = str(sum(int(number) for number in made.split(",")))
        yield {"prompt": f"{call}:S", "completion": made}
        yield {"prompt": f"{call}:S{made}E:{answer}S", "completion": answer}


def learn_one(seed, where):
    """Rates of success before and after."""
    settings = RUN | WARM_UP | {"output": os.path.join(where, "warm-up"), "model": os.path.join(SOURCE, "launch/quickstart/model"), "train.seed": seed,
                                "data.path": write_rows(os.path.join(where, "rows.jsonl"), demonstrations(8000, 1000 + seed)), "train.save_every": 0}
    start = [PROGRAM, "train", "--algorithm", "sft", "--quiet"]
    for key, value in settings.items():
        if not key.startswith(("rollout.", "serve.")):
            start += ["--set", f"{key}={value}"]
    subprocess.run(start, check=True)
    output = os.path.join(where, "run")
    keys = key_file(os.path.join(where, "keys"))
    live = LiveRun(output, RUN | LEARNING | {"serve.api_key_file": keys, "model": os.path.join(where, "warm-up/latest"), "train.seed": seed, "train.save_every": 0,
                                             "data.path": prompts(os.path.join(where, "prompts.jsonl"), 2000, seed)})
    program = os.path.join(where, "client.py")
    with open(program, "w", encoding="utf-8") as file:
        file.write(re.search(r"`client\.py`:\n\n```python\n(.*?)```", page(), re.DOTALL)[1])
    subprocess.run([sys.executable, program, f"http://127.0.0.1:{live.ports[0]}", keys], check=False, stderr=subprocess.DEVNULL)
    if live.wait() != 0:
        raise RuntimeError("".join(live.lines))
    rewards = [line["reward"] for line in lines_of(os.path.join(output, "metrics.jsonl"))]
    return sum(rewards[:3]) / 3, sum(rewards[-20:]) / 20


def learn(seeds):
    passed = True
    for seed in range(seeds):
        with folder() as where:
            before, after = learn_one(seed, where)
        print(f"seed {seed}: rate of success {before:.3f} before, {after:.3f} after")
        passed = passed and before < 0.3 and after > 0.9
    return passed


if __name__ == "__main__":
    if sys.argv[3:4] == ["learn"]:
        sys.exit(not learn(int(sys.argv[4])))
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
