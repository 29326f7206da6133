"""troupe serve for the scripts that run clients with it: PROGRAM SOURCE."""
import contextlib
import os
import re
import subprocess
import sys

PROGRAM, SOURCE = sys.argv[1], sys.argv[2]
TOOLS = os.path.join(SOURCE, "tests/data/chat_templates/tools.jinja")


@contextlib.contextmanager
def served(model, *options):
    """The address of a server of a model of tests/data/models, which is called `model`; fails unless it ends with exit code 0."""
    words = [PROGRAM, "serve", "--model", os.path.join(SOURCE, "tests/data/models", model), "--served-model-name", "model", "--port", "0", *options]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        yield re.fullmatch(r"listening on (.*)\n", server.stdout.readline())[1]
    finally:
        server.terminate()
        code = server.wait(60)
    assert code == 0, code
