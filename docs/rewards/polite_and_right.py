# A reward of two parts: 1 for a completion that contains the row's answer, and 0.5 for one that says thank you.
import json
import sys

for line in sys.stdin:
    question = json.loads(line)
    right = float(str(question["answer"]) in question["completion"])
    polite = float("thank you" in question["completion"].lower())
    print(json.dumps({"id": question["id"], "reward": right + 0.5 * polite, "parts": {"right": right, "polite": polite}}), flush=True)
