#!/usr/bin/env python3
"""troupe audit on ledgers with planted damage: each is found, by the kind that is named here.

The chain is computed again after most of them, and the checkpoints, whose anchors would differ, are removed: what
remains is to be found in the history itself. Usage: audit_test.py PROGRAM DATA SCRATCH"""
import hashlib
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys

program, data, scratch = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
COLUMNS = 'sequence, kind, samples, batch, step, hash, detail, segment, "offset", bytes'
failures = []


def train(output, steps, **more):
    settings = {
        "model": data / "models/digit-completion", "data.path": data / "../../launch/quickstart/train.jsonl",
        "train.max_length": 64, "rollout.max_new_tokens": 8, "train.batch_size": 2, "train.threads": 1, "train.log_every": 0,
        "grpo.group_size": 2, "async.mode": "pinned", "train.steps": steps, "train.save_every": 2,
        "rollout.record": "all", "reward": "[{rule: exact_match}]", "output": output, **more}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    done = subprocess.run([program, "train", "--algorithm", "grpo", *words], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stderr


def audit(run):
    done = subprocess.run([program, "audit", str(run), "--json"], capture_output=True, text=True, timeout=600)
    return done.returncode, json.loads(done.stdout) if done.stdout else {"findings": [done.stderr]}


def rows_of(path):
    with sqlite3.connect(path) as db:
        return db.execute("SELECT * FROM events ORDER BY sequence").fetchall()


def chain_again(db):
    """Numbers the rows from 1 on and computes their hashes, as docs/reliability.md describes them."""
    rows = db.execute(f"SELECT {COLUMNS} FROM events ORDER BY sequence").fetchall()
    numbers = {row[0]: number for number, row in enumerate(rows, 1)}
    before, out = "0" * 64, []
    for number, row in enumerate(rows, 1):
        row = list(row)
        row[0] = number
        if row[1] == "started" and '"length":' in row[6]:
            detail = json.loads(row[6])
            kept = [new for old, new in numbers.items() if old <= detail["length"]]
            detail["length"] = max(kept, default=0)
            row[6] = json.dumps(detail, separators=(",", ":"))
        text = "|".join("" if value is None else str(value) for value in row)
        before = hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()
        out.append((*row, before))
    db.execute("DELETE FROM events")
    db.executemany("INSERT INTO events VALUES(?,?,?,?,?,?,?,?,?,?,?)", out)
    return numbers


def rewrite_frames(run, numbers):
    """The sequences in the frames of segments follow those of their rows."""
    for path in (run / "ledger").glob("*.seg"):
        content = bytearray(path.read_bytes())
        at = 0
        while at < len(content):
            old = int.from_bytes(content[at + 8:at + 16], "little")
            content[at + 8:at + 16] = numbers.get(old, 0).to_bytes(8, "little")
            at += 56 + int.from_bytes(content[at + 16:at + 24], "little")
        path.write_bytes(content)


class Case:
    """A copy of the run with damage."""

    def __init__(self, name):
        self.name, self.run = name, scratch / "planted"
        shutil.rmtree(self.run, ignore_errors=True)
        shutil.copytree(whole, self.run, symlinks=True)
        self.db = sqlite3.connect(self.run / "ledger.db")

    def sql(self, *statements):
        for statement in statements:
            self.db.execute(statement)
        return self

    def chained(self, keep_checkpoints=False):
        numbers = chain_again(self.db)
        rewrite_frames(self.run, numbers)
        if not keep_checkpoints:
            for folder in self.run.glob("checkpoint-*"):
                shutil.rmtree(folder)
        return self

    def expect(self, *kinds):
        self.db.commit()
        self.db.close()
        code, found = audit(self.run)
        named = [kind for kind in kinds if found.get(kind, 0) > 0]
        if code != 5 or len(named) != len(kinds) or found.get("verdict") != "damaged" or not found["findings"]:
            failures.append(f"{self.name}: expected exit code 5 and {kinds}, found {code} and {found}")
        return self


def plant(name, kinds, *statements, keep_checkpoints=False):
    Case(name).sql(*statements).chained(keep_checkpoints).expect(*kinds)


def repeated(of, number=7, **changes):
    """A copy of a row of this kind at the end of the table."""
    columns = [changes.get(column.strip('"'), column) for column in COLUMNS.split(", ")[1:]]
    return (f"INSERT INTO events SELECT (SELECT max(sequence) + 1 FROM events), {', '.join(columns)}, chain FROM events "
            f"WHERE sequence = (SELECT sequence FROM events WHERE kind = '{of}' ORDER BY sequence LIMIT 1 OFFSET {number})")


def nth(kind, number=7):
    return f"sequence = (SELECT sequence FROM events WHERE kind = '{kind}' ORDER BY sequence LIMIT 1 OFFSET {number})"


def in_a_segment(number):
    """A payload that is in a file."""
    return f"sequence = (SELECT sequence FROM events WHERE kind = 'sampled' ORDER BY sequence DESC LIMIT 1 OFFSET {number})"


def without_one(kind, number=7):
    """The last sample of a row is missing."""
    return f"UPDATE events SET samples = json_remove(samples, '$[#-1]') WHERE {nth(kind, number)}"


def rows_removed():
    for kind in ("admitted", "leased", "sampled", "rewarded", "batched"):
        plant(f"no {kind} row", ["lost"], f"DELETE FROM events WHERE {nth(kind)}")
    for kind in ("admitted", "leased", "rewarded", "batched"):
        plant(f"one sample less in a {kind} row", ["lost"], without_one(kind))
    plant("one sample less in a sampled row", ["lost", "payload"],
          f"UPDATE events SET samples = json_remove(samples, '$[#-1]') WHERE {in_a_segment(1)}")
    plant("no row of a step", ["lost"], f"DELETE FROM events WHERE {nth('committed', 2)}")
    plant("no row of published weights", ["lost"], "DELETE FROM events WHERE kind = 'published' AND batch = 2")
    plant("no row of a removed segment", ["payload"], f"DELETE FROM events WHERE {nth('removed', 0)}")
    plant("no first row", ["chain"], "DELETE FROM events WHERE sequence = 1")
    plant("samples that are admitted only", ["lost"], "DELETE FROM events WHERE kind != 'admitted' AND samples = "
          f"(SELECT samples FROM events WHERE {nth('batched')})")
    plant("a batch without samples", ["lost"], "DELETE FROM events WHERE kind = 'batched' AND batch = 1")
    plant("the last rows, but a checkpoint knows them", ["chain"], "DELETE FROM events WHERE sequence > "
          "(SELECT max(sequence) - 40 FROM events)", keep_checkpoints=True)


def rows_repeated():
    plant("trained twice", ["duplicated"], repeated("batched"))
    plant("trained again in the last batch", ["duplicated"], repeated("batched", batch="(SELECT max(batch) FROM events)"))
    plant("trained again in the next batch", ["duplicated"], repeated("batched", batch="1 + (SELECT max(batch) FROM events)"))
    plant("sampled twice", ["duplicated"], repeated("sampled", 13))
    plant("a step twice", ["duplicated"], repeated("committed", 5))
    plant("a batch twice", ["duplicated"], repeated("committed", 5, step="1 + (SELECT max(step) FROM events)"))
    plant("admitted to two batches", ["duplicated"], repeated("admitted", batch="batch + 1"))
    plant("trained and dropped", ["duplicated"], repeated("batched", kind="'dropped'"))


def rows_changed():
    old = "json_set(detail, '$.versions[0][0][0]', batch - 2)"
    plant("too old", ["stale"], f"UPDATE events SET detail = {old} WHERE {nth('sampled', 13)}")
    future = "json_set(detail, '$.versions[0][0][0]', batch + 1)"
    plant("of weights that did not exist", ["stale"], f"UPDATE events SET detail = {future} WHERE {nth('sampled', 13)}")
    plant("a smaller eta", ["stale"], "UPDATE events SET detail = json_set(detail, '$.eta', 0) WHERE kind = 'started'")
    plant("another hash of a sample", ["payload"], f"UPDATE events SET hash = '{'0' * 32}' WHERE {in_a_segment(1)}")
    for member in ("hashes", "bytes"):
        plant(f"other {member} of one sample", ["payload"],
              f"UPDATE events SET detail = json_set(detail, '$.{member}[1]', json_extract(detail, '$.{member}[0]') || '0') WHERE {in_a_segment(1)}")
        plant(f"no {member}", ["payload"], f"UPDATE events SET detail = json_remove(detail, '$.{member}') WHERE {in_a_segment(1)}")
    plant("fewer bytes of one sample", ["payload"],
          f"UPDATE events SET detail = json_set(detail, '$.bytes[1]', json_extract(detail, '$.bytes[1]') - 1) WHERE {in_a_segment(1)}")
    plant("a sample twice in a row", ["duplicated"],
          f"UPDATE events SET samples = json_set(samples, '$[#]', json_extract(samples, '$[0]')) WHERE {nth('batched')}")
    plant("samples that are no list", ["chain"], f"UPDATE events SET samples = '7' WHERE {nth('rewarded')}")
    plant("another place", ["payload"], f"UPDATE events SET \"offset\" = \"offset\" + 1 WHERE {in_a_segment(1)}")
    plant("a place behind the end", ["payload"], f"UPDATE events SET \"offset\" = 1 << 40 WHERE {in_a_segment(1)}")
    plant("a negative place", ["payload"], f"UPDATE events SET \"offset\" = -5 WHERE {in_a_segment(1)}")
    plant("a shorter payload", ["payload"], f"UPDATE events SET bytes = bytes - 1 WHERE {in_a_segment(1)}")
    plant("a segment that is not there", ["payload"], f"UPDATE events SET segment = 77 WHERE {in_a_segment(1)}")
    plant("no payload", ["payload"], f"UPDATE events SET bytes = NULL WHERE {in_a_segment(1)}")
    plant("another step", ["duplicated"], f"UPDATE events SET step = step + 1 WHERE {nth('committed', 3)}")
    plant("another batch", ["lost"], f"UPDATE events SET batch = batch + 1 WHERE {nth('committed', 3)}")
    plant("another sample", ["lost"], f"UPDATE events SET samples = json_set(samples, '$[0]', 99999) WHERE {nth('batched')}")
    plant("a start that takes rows back", ["lost"], "UPDATE events SET detail = json_set(detail, '$.length', json_extract(detail, '$.length') - 8) WHERE "
          + nth("started", 1))
    plant("a start after another step", ["lost"], f"UPDATE events SET step = 3 WHERE {nth('started', 1)}")
    plant("another hash of weights", ["weights", "chain"], "UPDATE events SET hash = '0' WHERE kind = 'published'",
          keep_checkpoints=True)
    plant("another hash of a checkpoint", ["checkpoint"], "UPDATE events SET hash = '0' WHERE kind = 'saved'",
          keep_checkpoints=True)


def rows_with_the_old_chain():
    Case("a changed row").sql(f"UPDATE events SET samples = '[3]' WHERE {nth('rewarded')}").expect("chain")
    Case("a removed row").sql(f"DELETE FROM events WHERE {nth('leased')}").expect("chain")
    Case("a changed hash of the chain").sql(f"UPDATE events SET chain = 'x' WHERE {nth('leased')}").expect("chain")
    Case("two rows exchanged").sql("UPDATE events SET sequence = -sequence WHERE sequence IN (20, 21)",
                                   "UPDATE events SET sequence = 41 + sequence WHERE sequence < 0").expect("chain")


def files_changed():
    def change(name, kinds, path, edit):
        case = Case(name)
        edit(next(iter(sorted(case.run.glob(path)))))
        case.expect(*kinds)

    def flip(at):
        def edit(path):
            content = bytearray(path.read_bytes())
            content[at] ^= 1
            path.write_bytes(content)
        return edit

    change("a flipped bit of a payload", ["payload"], "ledger/*.seg", flip(80))
    change("a flipped bit of a frame's sequence", ["payload"], "ledger/*.seg", flip(8))
    change("a flipped bit of a frame's size", ["payload"], "ledger/*.seg", flip(16))
    change("a flipped bit of a frame's hash", ["payload"], "ledger/*.seg", flip(30))
    change("a flipped bit of a frame's beginning", ["payload"], "ledger/*.seg", flip(0))
    change("a cut segment", ["payload"], "ledger/*.seg", lambda path: os.truncate(path, path.stat().st_size - 1))
    change("an empty segment", ["payload"], "ledger/*.seg", lambda path: os.truncate(path, 0))
    change("a removed segment", ["payload"], "ledger/*.seg", os.remove)
    change("a flipped bit of the weights", ["checkpoint"], "checkpoint-*/model.safetensors", flip(-5))
    change("a flipped bit of a checkpoint's journal", ["checkpoint"], "checkpoint-*/training/journal.json", flip(20))
    change("another logged sample", ["samples"], "samples.jsonl",
           lambda path: path.write_text(path.read_text().replace('"sample_id":', '"sample_id":9', 1)))


def flipped_bits():
    """Of the database: found, or no row that is read has changed."""
    draw = random.Random(7)
    before, found = rows_of(whole / "ledger.db"), 0
    for _ in range(30):
        case = Case("a flipped bit of the database")
        case.db.close()
        path = case.run / "ledger.db"
        content = bytearray(path.read_bytes())
        at = draw.randrange(len(content))
        content[at] ^= 1 << draw.randrange(8)
        path.write_bytes(content)
        code, report = audit(case.run)
        if code == 0:
            if rows_of(path) != before:
                failures.append(f"a flipped bit at {at} of ledger.db changes a row and is not found")
        else:
            found += 1
            if code not in (5, 6) or "ledger.db" not in json.dumps(report) and report.get("chain", 0) == 0 and not report["findings"]:
                failures.append(f"a flipped bit at {at} of ledger.db: exit code {code}, {report}")
    if found < 10:
        failures.append(f"only {found} of 30 flipped bits were found")


def parts_without_a_record():
    """The audit begins where the record does."""
    run = scratch / "parts"
    train(run, 4, ledger="off")
    if (run / "ledger.db").exists() or audit(run)[0] != 4:
        failures.append("ledger: off makes a ledger")
    train(run, 8)
    code, report = audit(run)
    if code != 0 or report["first_step"] != 5 or report["last_step"] != 8 or report["trained"] != 16:
        failures.append(f"a ledger that begins later: {code} {report}")
    train(run, 12, ledger="off")
    train(run, 16)
    code, report = audit(run)
    if code != 0 or report["first_step"] != 13 or report["last_step"] != 16:
        failures.append(f"a ledger with a gap: {code} {report}")
    os.remove(run / "ledger.db")
    warned = train(run, 20)
    code, report = audit(run)
    if "a new ledger begins here" not in warned or code != 0 or report["first_step"] != 17:
        failures.append(f"a ledger that was removed: {warned} {code} {report}")


def free_and_resumed():
    """Samples that a checkpoint of async.mode free brings along are trained once."""
    run = scratch / "free"
    more = {"async.mode": "free", "async.eta": 2}
    for steps in (3, 7, 12):
        train(run, steps, **more)
    code, report = audit(run)
    if code != 0 or report["trained"] != 48:
        failures.append(f"async.mode free: {code} {report}")


whole = scratch / "whole"
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
train(whole, 8)
train(whole, 16)  # a second start
code, report = audit(whole)
if code != 0 or report["trained"] != 64 or report["payloads"] == 0 or report["compared_weights"] == 0 or report["logged_samples"] != 64:
    failures.append(f"the whole run: {code} {report}")
copied = scratch / "chained"
shutil.copytree(whole, copied)
with sqlite3.connect(copied / "ledger.db") as ledger:
    unchanged = ledger.execute("SELECT chain FROM events").fetchall()
    chain_again(ledger)
    if ledger.execute("SELECT chain FROM events").fetchall() != unchanged:
        failures.append("the chain that this test computes is not that of the ledger")
for part in (rows_removed, rows_repeated, rows_changed, rows_with_the_old_chain, files_changed, flipped_bits, parts_without_a_record, free_and_resumed):
    part()
missing = subprocess.run([program, "audit", str(scratch)], capture_output=True, text=True, timeout=60)
if missing.returncode != 4 or "expected the ledger of a run" not in missing.stderr:
    failures.append(f"no ledger: {missing}")
print("\n".join(failures) or "every planted damage was found")
if not failures:
    shutil.rmtree(scratch)
sys.exit(1 if failures else 0)
