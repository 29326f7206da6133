#!/usr/bin/env python3
"""Measures JSON schemas against public collections: tests/engine/constraints/schemas.py PROBE DIR LIST.

DIR has JSONSchemaBench (github.com/guidance-ai/jsonschemabench) as DIR/bench and JSON-Schema-Test-Suite
(github.com/json-schema-org/JSON-Schema-Test-Suite) as DIR/suite. PROBE is build/PRESET/tests/schema_probe, LIST the names of
the schemas of the bench, a line each ("SET/FILE"). Needs the packages jsonschema[format] and regress (ECMAScript's expressions).

Fails when a grammar has an invalid instance, when a schema takes more than a second of the processor's time, or when fewer schemas are accepted than
the thresholds below. `--choose SEED` writes LIST instead."""
import argparse
import collections
import fractions
import glob
import json
import os
import random
import re
import subprocess
import sys

SETS = ["Glaiveai2K", "Github_trivial", "Github_easy", "Github_medium", "Github_hard", "Github_ultra", "JsonSchemaStore",
        "Kubernetes", "Snowplow", "WashingtonPost"]
OF_EACH_SET = 400
DRAWN_TEXTS = 4000
LEAST_ACCEPTED = 0.8
LEAST_OF_SUITE = 213
MOST_SECONDS = 1.0


def choose(folder, list_file, seed):
    names = []
    for part in SETS:
        files = sorted(part + "/" + os.path.basename(f) for f in glob.glob(f"{folder}/bench/data/{part}/*.json"))
        rng = random.Random(f"{seed} {part}")
        names += sorted(rng.sample(files, min(OF_EACH_SET, len(files))))
    with open(list_file, "w") as out:
        out.write(f"# {OF_EACH_SET} schemas of each set of JSONSchemaBench, seed {seed}\n" + "\n".join(names) + "\n")


class Probe:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the probe ended at {json.dumps(request)[:2000]}")
        return json.loads(line)


def validator(schema, registry=None, default=None):
    import jsonschema
    default = default or jsonschema.Draft202012Validator
    kind = jsonschema.validators.validator_for(schema, default=default) if isinstance(schema, dict) else default
    kind = jsonschema.validators.extend(kind, {"pattern": pattern, "patternProperties": pattern_properties, "multipleOf": multiple_of})
    more = {} if registry is None else {"registry": registry}
    return kind(schema, format_checker=kind.FORMAT_CHECKER, **more)


# Expressions are ECMAScript's: jsonschema uses Python's, which differ in $, \\d, \\w and \\s.
def search(expression, text):
    try:
        import regress
        return regress.Regex(expression, "u").find(text) is not None
    except Exception:
        return re.search(expression, text) is not None


def pattern(checker, expression, instance, _schema):
    import jsonschema
    if isinstance(instance, str) and not search(expression, instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {expression!r}")


def multiple_of(_checker, divisor, instance, _schema):
    """In decimals: jsonschema divides floats, in which 8.52 is no multiple of 0.01."""
    import jsonschema
    if isinstance(instance, (int, float)) and not isinstance(instance, bool):
        if fractions.Fraction(str(instance)) % fractions.Fraction(str(divisor)):
            yield jsonschema.ValidationError(f"{instance!r} is not a multiple of {divisor!r}")


def pattern_properties(checker, patterns, instance, _schema):
    if not isinstance(instance, dict):
        return
    for expression, subschema in patterns.items():
        for name, value in instance.items():
            if search(expression, name):
                yield from checker.descend(value, subschema, path=name, schema_path=expression)


def reason(error):
    error = re.sub(r"^the JSON schema, .*?: ", "", error)
    return re.sub(r'"[^"]*/[^"]*"', '"..."', error)[:90]


def bench(probe, folder, list_file, verbose):
    names = [line.strip() for line in open(list_file) if not line.startswith("#")]
    sets, reasons = collections.defaultdict(collections.Counter), collections.Counter()
    examples = collections.defaultdict(list)
    invalid = unfinished = drawn = judged = 0
    slowest = (0.0, "")
    for place, name in enumerate(names):
        part = name.split("/")[0]
        try:
            with open(f"{folder}/bench/data/{name}") as file:
                schema = json.load(file)
        except ValueError:
            sets[part]["unreadable"] += 1
            continue
        answer = probe.ask(schema=schema, draws=4, seed=place)
        slowest = max(slowest, (answer.get("seconds", 0), name))
        if "error" in answer:
            sets[part]["refused"] += 1
            why = reason(answer["error"])
            reasons[why] += 1
            examples[why].append(name)
            continue
        sets[part]["accepted"] += 1
        if "limit" in answer:
            sets[part]["limit while used"] += 1
            continue
        for text in answer["drawn"]:
            if not text:
                unfinished += 1
                continue
            drawn += 1
            try:
                errors = [e.message[:300] for e in validator(schema).iter_errors(json.loads(text))]
            except Exception as failure:  # a schema that jsonschema cannot use
                sets[part]["not judged"] += 1
                if verbose:
                    print(f"not judged: {name}: {failure!r}"[:300])
                break
            judged += 1
            if errors:
                invalid += 1
                print(f"INVALID: {name}: {text[:600]}: {errors[:3]}")
    accepted = sum(each["accepted"] for each in sets.values())
    of = accepted + sum(each["refused"] for each in sets.values())
    for part, counts in sets.items():
        print(f"{part}: {dict(counts)}")
    for why, count in reasons.most_common(40):
        print(f"{count:5} {why}   {examples[why][:3] if verbose else ''}")
    print(f"bench: {accepted} of {of} accepted ({100 * accepted / of:.1f} %), {judged} of {drawn} random texts judged, {invalid} invalid, "
          f"{unfinished} unfinished, slowest compilation {slowest[0]:.2f} s ({slowest[1]})")
    return invalid == 0 and slowest[0] <= MOST_SECONDS and accepted >= LEAST_ACCEPTED * of and drawn >= DRAWN_TEXTS


def forms(value):
    """Texts of a value that the grammar may have."""
    return [json.dumps(value, separators=separators, ensure_ascii=ascii_only)
            for separators in ((",", ":"), (", ", ": ")) for ascii_only in (False, True)]


def suite(probe, folder, verbose):
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012
    remotes = f"{folder}/suite/remotes"
    registry = Registry()
    for file in glob.glob(f"{remotes}/**/*.json", recursive=True):
        uri = "http://localhost:1234/" + os.path.relpath(file, remotes)
        registry = registry.with_resource(uri, Resource.from_contents(json.load(open(file)), default_specification=DRAFT202012))
    accepted = total = invalid = writable = valid = found = judged = 0
    reasons = collections.Counter()
    files = sorted(glob.glob(f"{folder}/suite/tests/draft2020-12/**/*.json", recursive=True))
    for file in files:
        for group in json.load(open(file)):
            total += 1
            tests = group["tests"]
            texts = [form for each in tests for form in forms(each["data"])]
            answer = probe.ask(schema=group["schema"], texts=texts, draws=8, seed=total)
            if "error" in answer:
                reasons[reason(answer["error"])] += 1
                if verbose:
                    print(f"refused: {os.path.basename(file)}: {group['description']}: {answer['error'][:150]}")
                continue
            accepted += 1
            if "limit" in answer:
                continue
            for each, start in zip(tests, range(0, len(texts), 4)):
                hit = any(answer["matched"][start:start + 4])
                if each["valid"]:
                    valid, found = valid + 1, found + hit
                else:
                    invalid, writable = invalid + 1, writable + hit
                    if hit:
                        print(f"WRITABLE: {file}: {group['description']}: {each['description']}: {json.dumps(each['data'])}")
            for text in filter(None, answer["drawn"]):
                try:
                    errors = [e.message for e in validator(group["schema"], registry).iter_errors(json.loads(text))]
                except Exception as failure:
                    if verbose:
                        print(f"not judged: {group['description']}: {failure!r}"[:300])
                    break
                judged += 1
                if errors:
                    writable += 1
                    print(f"INVALID: {file}: {group['description']}: {text[:300]}: {errors[:2]}")
    for why, count in reasons.most_common(25):
        print(f"{count:5} {why}")
    print(f"suite: {accepted} of {total} schemas accepted, {writable} invalid of {invalid} instances and {judged} random texts, "
          f"{found} of {valid} valid instances writable")
    return writable == 0 and accepted >= LEAST_OF_SUITE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe")
    parser.add_argument("folder")
    parser.add_argument("list")
    parser.add_argument("--choose", type=int, metavar="SEED")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--only", choices=["bench", "suite"])
    given = parser.parse_args()
    if given.choose is not None:
        return choose(given.folder, given.list, given.choose)
    probe = Probe(given.probe)
    good = given.only == "suite" or bench(probe, given.folder, given.list, given.verbose)
    good = (given.only == "bench" or suite(probe, given.folder, given.verbose)) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
