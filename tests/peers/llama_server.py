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
           "--verbose": 0, "-ctk": 1, "-ctv": 1, "-fa": 1, "--no-ui": 0, "--kv-unified": 0, "--cache-ram": 1, "--pooling": 1, "--model-url": 1, "--tags": 1,
           "--swa-full": 0}


def translated(rest):
    """The options of `troupe serve`, and the first one of llama-server that has no translation, or None."""
    words, template, model = [], os.path.join(DATA, "chat_templates/tools.jinja"), os.path.join(DATA, "models/stories260k/hf")
    while rest:
        word, *rest = rest
        value = rest[0] if rest else ""
        if word in IGNORED:
            rest = rest[IGNORED[word]:]
            continue
        rest = rest[1:] if word not in ("--embedding", "--reranking") else rest
        if word in ("--port", "--host"):
            words += [word, value]
        elif word == "--alias":
            words += ["--served-model-name", value]
        elif word == "--ctx-size":
            words += ["--model-overrides", f"max_position_embeddings={value}"]
        elif word == "--embedding":
            words += ["--runner", "pooling"]
        elif word == "--reranking":
            model = os.environ.get("TROUPE_MODEL", model)
        elif word == "--api-key":
            with tempfile.NamedTemporaryFile("w", delete=False) as file:
                file.write("test " + value + "\n")
            words += ["--api-key-file", file.name]
        elif word == "--chat-template-file":
            template = value
        elif (word, value) == ("--reasoning-format", "deepseek"):
            words += ["--reasoning-parser", "deepseek_r1"]
        elif (word, value) not in (("--reasoning-format", "none"), ("--reasoning", "on"), ("--reasoning", "auto")):
            return [], f"{word} {value}" if word.startswith("--reasoning") else word
    return ["--model", model, "--threads", "1", *words, "--template", template], None


def skip_untranslated(words):
    import pytest

    word = translated([str(each) for each in words])[1]
    if word is not None:
        pytest.skip(f"the option {word} of llama-server")


def main():
    words, word = translated(sys.argv[1:])
    if word is not None:
        sys.exit(f"llama-server: the option {word} has no translation")
    program = os.environ["TROUPE"]
    os.execv(program, [program, "serve", *words])


if __name__ == "__main__":
    main()
