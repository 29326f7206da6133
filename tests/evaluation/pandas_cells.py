"""Columns of csv files and what pandas prints of them, for the tests of the suite mindspeed (pandas 2.2.3).

Usage: pandas_cells.py > tests/data/evaluation/pandas_cells.jsonl
"""

import csv
import io
import json
import random

import pandas

WORDS = ["red", "None", "NA", "", "nan", "N/A", "null", "NULL", "<NA>", "#N/A", "1.#QNAN", "-nan", "NaN", "none", "Nan", "n/a", "True", "x y", " 5"]
WHOLE = ["1", "007", "+3", "-4", " 12", "0", "-0", "9223372036854775807"]
REAL = ["0.50", "2", "1e5", ".5", "5.", "1e-7", "123456789.125", "-3.25", "1E3", "1e16", "100000000000000000000.0"]
EXTREME = ["18446744073709551615", "9999999999999999999", "99999999999999999999", "inf", "-Infinity", "1e309", "1e-320", "1e-700", "0.12345678901234567891", "1e+", ".",
           "-9999999999999999999", "1_000", "0x10", "+-1"]
TRUTH = ["True", "FALSE", "true", "False"]


def printed(cells):
    text = io.StringIO()
    csv.writer(text).writerows([[f"question {n}", cell] for n, cell in enumerate(cells)])
    frame = pandas.read_csv(io.StringIO(text.getvalue()), names=["question", "A"])
    return [f"{row['A']}" for _, row in frame.iterrows()]


def main():
    rng = random.Random(1)
    columns = [[word, "red"] for word in WORDS] + [[word] for word in WORDS] + [WHOLE, REAL, TRUTH, WHOLE[:3] + ["None"], TRUTH + ["NA"], REAL[:3] + [""]] + [[word] for word in EXTREME]
    pools = [WORDS, WHOLE, REAL, TRUTH, WHOLE + REAL, WHOLE + [""], TRUTH + [""], WORDS + WHOLE, TRUTH + WHOLE]
    columns += [rng.choices(rng.choice(pools), k=rng.randint(1, 6)) for _ in range(300)]
    pools = [EXTREME, EXTREME + WHOLE, EXTREME + REAL, EXTREME[:3] + ["", "NA"], EXTREME[:3] + WHOLE, ["tRuE", "fALSE"]]
    columns += [rng.choices(rng.choice(pools), k=rng.randint(1, 4)) for _ in range(200)]
    for cells in columns:
        print(json.dumps({"cells": cells, "printed": printed(cells)}))


if __name__ == "__main__":
    main()
