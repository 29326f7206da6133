"""tests/utils.py of vLLM, whose RemoteOpenAIServer starts troupe. The variables TROUPE and TROUPE_ROOT name the program and its sources."""
import json
import os
import re
import signal
import subprocess
import tempfile

import anthropic
import openai

PROGRAM, ROOT = os.environ["TROUPE"], os.environ["TROUPE_ROOT"]
DATA = os.path.join(ROOT, "tests/data")
STORIES = os.path.join(DATA, "models/stories260k/hf")
ROCM_EXTRA_ARGS: list = []
# Options of vLLM that change nothing here, with the number of their values.
IGNORED = {"--dtype": 1, "--enforce-eager": 0, "--gpu-memory-utilization": 1, "--max-num-seqs": 1, "--seed": 1, "--runner": 1, "--trust-remote-code": 0,
           "--enable-lora": 0, "--max-lora-rank": 1, "--max-cpu-loras": 1, "--max-loras": 1, "--enable-prompt-tokens-details": 0, "--tokenizer": 1,
           "--max-num-batched-tokens": 1, "--enable-chunked-prefill": 0, "--no-enable-prefix-caching": 0, "--enable-auto-tool-choice": 0,
           "--enable-tokenizer-info-endpoint": 0, "--enable-server-load-tracking": 0, "--load-format": 1, "--structured-outputs-config.backend": 1,
           "--kv-cache-dtype": 1, "--enable-force-include-usage": 0, "--convert": 1, "--tool-server": 1, "--kv-sharing-fast-prefill": 0,
           "--show-hidden-metrics-for-version": 1, "--max-logprobs": 1, "--disable-log-stats": 0, "--attention-backend": 1, "--generation-config": 1,
           "--pooler-config": 1, "--disable-uvicorn-access-log": 0}
RENAMED = {"--served-model-name": "--served-model-name", "--tool-call-parser": "--tool-call-parser", "--reasoning-parser": "--reasoning-parser"}


def skip(why):
    import pytest

    pytest.skip(why)


def template_file(value):
    """A template may be given as text."""
    if os.path.exists(value):
        return value
    with tempfile.NamedTemporaryFile("w", suffix=".jinja", delete=False) as file:
        file.write(value)
    return file.name


def translated(words):
    """The options of `troupe serve`."""
    out, rest, length = [], list(words), 8192
    while rest:
        word, *value = rest.pop(0).split("=", 1)
        word = word.replace("_", "-") if word.startswith("--") else word
        if word in IGNORED:
            if IGNORED[word] and not value:
                rest.pop(0)
        elif word == "--max-model-len":
            length = int((value or [rest.pop(0)])[0])
        elif word == "--lora-modules":
            while rest and not rest[0].startswith("--"):
                each = rest.pop(0)
                pair = json.loads(each) if each.startswith("{") else dict(zip(("name", "path"), each.split("=", 1)))
                out += ["--adapter", f"{pair['name']}={pair['path']}"]
        elif word == "--chat-template":
            out += ["--template", template_file((value or [rest.pop(0)])[0])]
        elif word in RENAMED:
            out += [RENAMED[word], (value or [rest.pop(0)])[0]]
        else:
            skip(f"the option {word} of vLLM")
    return [*out, "--model-overrides", f"max_position_embeddings={min(length, int(os.environ.get('TROUPE_LONGEST', length)))}"]


class RemoteOpenAIServer:
    DUMMY_API_KEY = "token-abc123"

    def __init__(self, model, vllm_serve_args, *, env_dict=None, seed=0, auto_port=True, max_wait_seconds=None, override_hf_configs=None):
        del auto_port, max_wait_seconds, seed
        if override_hf_configs:
            skip("the configuration of a model")
        folder = os.environ.get("TROUPE_MODEL", STORIES)
        words = [PROGRAM, "serve", "--model", folder, "--port", "0", "--threads", "1", *translated(vllm_serve_args)]
        if "--served-model-name" not in words:
            words += ["--served-model-name", model]
        if "--template" not in words:
            words += ["--template", os.path.join(DATA, "chat_templates", "qwen3.jinja" if "Qwen3" in model else "tools.jinja")]
        if os.environ.get("TROUPE_RUNNER"):
            words += ["--runner", os.environ["TROUPE_RUNNER"]]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True, env=dict(os.environ, **(env_dict or {})))
        found = re.search(r":(\d+)\n", self.process.stdout.readline())
        if not found:
            self.process.kill()
            self.log.seek(0)
            raise RuntimeError(f"{words}: {self.log.read().decode()}")
        self.host, self.port, self.uds, self.show_hidden_metrics = "127.0.0.1", int(found[1]), None, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()

    @property
    def url_root(self):
        return f"http://{self.host}:{self.port}"

    def url_for(self, *parts):
        return "/".join([self.url_root, *(part.strip("/") for part in parts)])

    def get_client(self, **more):
        return openai.OpenAI(base_url=self.url_for("v1"), api_key=self.DUMMY_API_KEY, max_retries=0, **dict({"timeout": 600}, **more))

    def get_async_client(self, **more):
        return openai.AsyncOpenAI(base_url=self.url_for("v1"), api_key=self.DUMMY_API_KEY, max_retries=0, **dict({"timeout": 600}, **more))

    def get_client_anthropic(self, **more):
        return anthropic.Anthropic(base_url=self.url_for(), api_key=self.DUMMY_API_KEY, max_retries=0, **more)

    def get_async_client_anthropic(self, **more):
        return anthropic.AsyncAnthropic(base_url=self.url_for(), api_key=self.DUMMY_API_KEY, max_retries=0, **more)


RemoteOpenAIServerCustom = RemoteLaunchRenderServer = RemoteOpenAIServer
