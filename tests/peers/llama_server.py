#!/usr/bin/env python3
"""llama-server for its own tests: translates its options to `troupe serve`. The variables TROUPE and TROUPE_ROOT name the program and its sources."""
import os
import sys
import tempfile

ROOT = os.environ["TROUPE_ROOT"]
DATA = os.path.join(ROOT, "tests/data")
# Without effect here, with the number of their values.
IGNORED = {"--temp": 1, "--seed": 1, "--hf-repo": 1, "--hf-file": 1, "--batch-size": 1, "--ubatch-size": 1, "--threads": 1, "--n-gpu-layers": 1,
           "--cont-batching": 0, "--metrics": 0, "--no-slots": 0, "--parallel": 1, "--n-predict": 1, "--jinja": 0, "--no-jinja": 0, "--offline": 0,
           "--verbose": 0, "-ctk": 1, "-ctv": 1, "-fa": 1, "--no-ui": 0, "--kv-unified": 0, "--cache-ram": 1, "--pooling": 1, "--model-url": 1, "--tags": 1}


def main():
    words, rest = [os.environ["TROUPE"], "serve", "--model", os.path.join(DATA, "models/stories260k/hf"), "--threads", "1"], sys.argv[1:]
    template = ["--template", os.path.join(DATA, "chat_templates/tools.jinja")]
    while rest:
        word = rest.pop(0)
        if word in IGNORED:
            del rest[:IGNORED[word]]
        elif word in ("--port", "--host"):
            words += [word, rest.pop(0)]
        elif word == "--alias":
            words += ["--served-model-name", rest.pop(0)]
        elif word == "--ctx-size":
            words += ["--model-overrides", f"max_position_embeddings={rest.pop(0)}"]
        elif word == "--embedding":
            words += ["--runner", "pooling"]
        elif word == "--api-key":
            with tempfile.NamedTemporaryFile("w", delete=False) as file:
                file.write("test " + rest.pop(0) + "\n")
            words += ["--api-key-file", file.name]
        elif word == "--chat-template-file":
            template = ["--template", rest.pop(0)]
        else:
            sys.exit(f"llama-server: the option {word} has no translation")
    os.execv(words[0], words + template)


if __name__ == "__main__":
    main()
