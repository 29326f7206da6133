#!/bin/bash
# The tests that continuous integration has no time for; hours. Usage: tests/long.sh [PART...] [trainers --latest] [schemas DIR] [peers DIR] [megatron DIR] [evaluation DIR] [faults N]
#   plain     every source compiled alone (no unity build), in build/plain, and every test
#   asan      every test under AddressSanitizer and UBSan
#   tsan      every test under ThreadSanitizer
#   fuzz      each fuzz target for five minutes
#   power     10,000 images of power failures of a ledger that is written: no acknowledged row is missing, the audit is clean
#   kill      225 kills of runs, 240 damages to their files, 120 to what `troupe convert` and `merge` read, 20 of `troupe preprocess`, `troupe convert` and `merge` before every file operation, 117 crash points and simulated power failures; the other tests that kill processes, ten times; ranks and engine threads that hang, with the program's own times
#   faults [N]  N faults (200) of processes of `troupe launch`, drawn by seed: SIGKILL, SIGSTOP for 2, 8 and 60 s, ended connections; the weights, the audit and what is left;
#             20 kills of a rollout: the time until its samples are given away, and until its successor samples
#   micro_batches  train.micro_batch_tokens 512 to 8192 on a tied, an untied and a LoRA model, f32 and bf16, dp 1 and 2, SFT, DPO and GRPO: equal bytes
#   layouts   every layout of up to 8 ranks (dp, tp, pp, vpp, cp, sp, zero, overlap) for every method beside one rank: losses, gradients; threads, mpirun and a repetition: equal bytes
#   examples  a copy of the tree to which docs/adding-an-algorithm.md is applied: it compiles, and the method of the page trains
#   differential  10,000 texts a tokenizer, 200 tokenizers, 10,000 programs and 2,000 renders against the libraries, in a virtual environment
#   clients   the official openai and anthropic clients, openai-agents and instructor with troupe serve, in a virtual environment
#   trainers [--latest]  every method with compat: trl beside TRL's trainers, 21 steps over three epochs, five chat templates: losses within 1e-4; in a virtual environment
#             with the versions of tests/trainers/requirements.txt, or the newest
#   async     100,000 seeds of the simulator; a commit within a Generate of 30 s; pinned runs with eta 0, 1 and 4 over 1, 2 and 7 rollouts, in one process and in clusters, with 10 seeds of delays, 20 kills and extensions: one SHA-256 of the weights per eta
#   connections  the step rate of a launch with 1,500 connections held to what it listens on, with and without network namespaces
#   pretrain  300 steps of a 15M model on TinyStories beside plain PyTorch: equal validation losses within 1 %
#   learning  the digit task with async.mode pinned and free, eta 0, 1 and 4, five seeds each: reward and staleness; with rollout.top_p 0.8,
#             with and without replay of sampling masks, beside untruncated samples: reward, steps, KL, clipped share
#   context   SFT and DPO over 16,384 and 32,768 tokens with parallel.cp 4 beside one rank: losses, memory, MFU
#   explain   the times and the peak memory that troupe explain predicts beside runs: the demo's run files, and methods over small models
#   import [DIR]  the shell scripts below DIR (such as a copy of verl's repository; by default those of tests/data): the words that `troupe import` reads are those that bash passes; methods, exit codes and lost settings of all files
#   agent     the agent of docs/agents.md, three seeds: from below 0.3 to above 0.9 of its tasks
#   precision  200 steps of a 110M model with bf16 products, moments, weights and gradients beside f32: losses within 1 %
#   memory    the peak memory of each rank beside what troupe explain predicts, over grids, types, recomputation and methods; parallel.zero; growth while a checkpoint is written
#   serve     troupe serve: 1,000 random schemas, the time until a cancelled request's pages are free, 100,000 requests with random cancellations, disconnects and timeouts;
#             100,000 random requests of all endpoints and a run with serve.listen under AddressSanitizer; the memory and the delay that expensive requests cost
#   schemas DIR  JSON schemas of public collections that lie in DIR (named in tests/engine/constraints/schemas.py): how many are accepted; no random text is invalid
#   peers DIR  the tests of the servers of vLLM and llama.cpp, whose sources lie in DIR/vllm (0.33.0) and DIR/llama.cpp: those that
#             tests/peers/*.txt name pass, are refused by name, or are about something else, in a virtual environment
#   megatron DIR  the command lines of MindSpeed-LLM's published scripts, DIR/VERSION.jsonl (tests/megatron/scripts.py): which are taken, and which run two steps with small
#             models (run_scripts.py); scripts as they are published, by bash
#   hosts     runs over three hosts made of namespaces, by ssh and Slurm (as root; tests/hosts/runs.py): weights, ports, refusals, 20 steps; processes and links that fail (faults.py)
#   package   the .deb and the archive in bare Debian systems (as root)
#   evaluation [DIR]  troupe eval --task beside lm-evaluation-harness 0.4.13 through troupe serve, item by item, with 8192 and 512 positions, on rows made for the tests, in a
#             virtual environment; with DIR the prompts of the published data that lie there (the layout of docs/evaluation.md)
# Without arguments, all of them but schemas, peers and megatron. Each part that passes is recorded in tests/long.log with the date and the commit; commit that file.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

selected() { # selected PROGRAM FILTER [FLAG...]: the program's tests of a filter, which must have some
  local program=build/release/tests/$1 filter=$2
  shift 2
  if [[ $("$program" --gtest_filter="$filter" --gtest_list_tests | grep -c '^  ') == 0 ]]; then
    echo "tests/long.sh: $program has no test '$filter'" >&2
    return 1
  fi
  "$program" --gtest_filter="$filter" --gtest_brief=1 "$@"
}
run_plain() {
  mkdir -p build/plain
  [[ -e build/plain/arrow-venv ]] || ln -s ../release/arrow-venv build/plain/arrow-venv
  cmake --preset plain >&2
  cmake --build --preset plain -j "$(nproc)" >&2
  ctest --test-dir build/plain -j 2 --output-on-failure
}
run_asan() { tests/sanitize.sh asan all; }
run_tsan() { tests/sanitize.sh tsan all; }
run_fuzz() {
  mkdir -p build/asan
  [[ -e build/asan/arrow-venv ]] || ln -s ../release/arrow-venv build/asan/arrow-venv
  cmake --preset asan >&2
  cmake --build --preset fuzz -j "$(nproc)" >&2
  tests/fuzz/run.sh 300
}
run_power() { TROUPE_LEDGER_POWER_LOSSES=10000 selected ledger_power_test '*'; }
run_kill() {
  # 25 kills and 13 crash points for each of the eight methods, and for sft on four ranks.
  TROUPE_KILLS=25 TROUPE_CRASH_POINTS=13 TROUPE_POWER_LOSSES=200 selected system_test '*Killed*:PowerLoss*'
  python3 -B tests/system/hangs.py build/release/troupe . long >&2
  TROUPE_KILLS=20 selected launch_preprocess_test '*KilledAtRandomTimes*'
  TROUPE_CRASH_POINTS=1000 selected launch_convert_test '*KilledWriting*'
  TROUPE_DAMAGES=60 selected system_test '*DamagedFiles*:*DamagedModels*'
  selected system_test '*Interrupted*' --gtest_repeat=10 --gtest_break_on_failure
  selected engine_checkpoint_test '*Crash*' --gtest_repeat=10
}
run_faults() {
  python3 -B tests/system/faults.py build/release/troupe . "${faults:-200}" >&2
  python3 -B tests/system/faults.py build/release/troupe . times >&2
}
run_micro_batches() {
  selected system_test '*All/MicroBatchRuns*' --gtest_also_run_disabled_tests
}
run_layouts() {
  selected system_test '*All/EveryLayout*' --gtest_also_run_disabled_tests
}
run_examples() {
  local copy
  copy=$(mktemp -d)
  git ls-files -z | xargs -0 cp --parents -t "$copy"
  python3 -B tests/docs/extract.py apply "$copy" docs/adding-an-algorithm.md
  mkdir -p "$copy/build/release"
  ln -s "$PWD/build/release/arrow-venv" "$copy/build/release/arrow-venv"
  (
    cd "$copy"
    cmake --preset release >&2
    cmake --build --preset release -j "$(nproc)" --target troupe algorithms_loops_test >&2
    selected algorithms_loops_test 'Dpop.*'
    for i in 1 2 3 4; do
      echo "{\"prompt\": \"$i + $i = \", \"chosen\": \"$((i + i))\", \"rejected\": \"$((i * 9))\"}"
    done >pairs.jsonl
    build/release/troupe train --algorithm dpop --set model=launch/quickstart/model --set data.path=pairs.jsonl --set output=run \
      --set train.steps=3 --set train.batch_size=4 --set dpop.lambda=5
    grep -q '"penalty"' run/metrics.jsonl
  )
  rm -rf "$copy"
}
run_differential() {
  local venv=build/differential-venv
  [[ -e $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r tests/differential/requirements.txt >&2
  TROUPE_PYTHON=$venv/bin/python tests/differential/run.sh build/release/troupe all
  TROUPE_PYTHON=$venv/bin/python tests/differential/run_client.sh openai_client build/release/troupe .
}
run_clients() {
  local venv=build/clients-venv client
  [[ -e $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r tests/differential/clients.txt >&2
  for client in openai_client anthropic_client agents_client; do
    TROUPE_PYTHON=$venv/bin/python tests/differential/run_client.sh $client build/release/troupe .
  done
}
run_trainers() {
  local venv=build/trainers-venv packages=(-r tests/trainers/requirements.txt)
  [[ -e $venv/bin/python ]] || python3 -m venv "$venv"
  if [[ -n $latest ]]; then
    mapfile -t packages < <(sed 's/==.*//' tests/trainers/requirements.txt)
    packages+=(--upgrade)
  fi
  "$venv/bin/pip" install -q "${packages[@]}" >&2
  "$venv/bin/python" -B tests/trainers/compare.py build/release/troupe tests/data
}
run_connections() {
  local data=tests/data more
  for more in "" --without-namespaces; do
    # shellcheck disable=SC2086
    python3 -B benchmarks/connections.py build/release/troupe $data/models/stories260k/hf $data/datasets/math/gsm8k_train_head.jsonl $more
  done
}
run_pretrain() {
  cmake/install_packages.sh with-peers
  tests/pretrain/compare_with_torch.py build/release/troupe tests/data/models/stories260k/hf tests/data/datasets/pretrain/tinystories_train.txt
}
run_learning() {
  local folder
  folder=$(mktemp -d)
  python3 -B benchmarks/async_learning.py build/release/troupe "$folder/async" >&2
  python3 -B benchmarks/mask_learning.py build/release/troupe "$folder/masks" >&2
  rm -rf "$folder"
}
run_context() {
  python3 -B benchmarks/long_context.py build/release/troupe tests/data/models/stories260k/hf tests/data/datasets/pretrain/tinystories_train.txt >&2
}
run_precision() {
  python3 -B benchmarks/precision.py build/release/troupe tests/data/models/stories260k/hf tests/data/datasets/pretrain/tinystories_train.txt >&2
}
run_memory() { python3 -B tests/memory/peaks.py build/release/troupe tests/data/models/stories260k/hf >&2; }
run_explain() { python3 -B tests/explain/estimates.py build/release/troupe . >&2; }
run_async() {
  TROUPE_SIMULATOR_SEEDS=100000 build/release/tests/simulator_test --gtest_brief=1
  TROUPE_GENERATE_SECONDS=30 selected parity_test '*ACommitIsAcknowledgedWithinTwoSteps'
  TROUPE_DELAY_SEEDS=10 selected algorithms_loops_test '*Delays*'
  tests/system/pinned.sh 10 20
}
run_import() {
  python3 -B tests/launch/import_scripts.py build/release/troupe "${scripts:-tests/data/import/verl}" >&2
  python3 -B tests/launch/import_table.py build/release/troupe "${scripts:-tests/data/import}" >&2
}
run_agent() { python3 -B tests/launch/agent_test.py build/release/troupe . learn 3 >&2; }
run_serve() {
  python3 -B tests/launch/serve_soak.py build/release/troupe . >&2
  python3 -B tests/launch/serve_attacks.py build/release/troupe . >&2
  mkdir -p build/asan
  [[ -e build/asan/arrow-venv ]] || ln -s ../release/arrow-venv build/asan/arrow-venv
  cmake --preset asan >&2
  cmake --build --preset asan -j "$(nproc)" --target troupe >&2
  python3 -B tests/launch/serve_fuzz.py build/asan/troupe . 100000 >&2
}
run_schemas() {
  local venv=build/differential-venv
  if [[ -z $schemas ]]; then
    echo "tests/long.sh: schemas needs a folder with the collections: tests/long.sh schemas DIR" >&2
    return 1
  fi
  [[ -e $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q 'jsonschema[format]==4.26.0' regress==2026.9.1 >&2
  "$venv/bin/python" -B tests/engine/constraints/schemas.py build/release/tests/schema_probe "$schemas" tests/data/schemas/bench_list.txt >&2
}
run_megatron() {
  if [[ ! -d $megatron ]]; then
    echo "tests/long.sh: megatron needs a folder with the command lines: tests/long.sh megatron DIR" >&2
    return 1
  fi
  python3 -B tests/megatron/scripts.py build/release/troupe "$megatron"/*.jsonl >&2
  python3 -B tests/megatron/bash_scripts.py build/release/troupe tests/data/megatron/scripts >&2
  python3 -B tests/megatron/run_scripts.py build/release/troupe "$megatron"/*.jsonl >&2
}
run_peers() {
  local venv=build/peers-venv
  if [[ ! -d $peers ]]; then
    echo "tests/long.sh: peers needs a folder with the sources: tests/long.sh peers DIR" >&2
    return 1
  fi
  [[ -e $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r tests/peers/requirements.txt >&2
  "$venv/bin/python" -B tests/peers/run.py build/release/troupe . "$peers" >&2
}
run_evaluation() {
  local venv=build/evaluation-venv rows=build/evaluation-rows model=tests/data/models/tinystories-656k
  [[ -e $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r tests/evaluation/requirements.txt >&2
  rm -rf "$rows"
  python3 -B tests/evaluation/made_rows.py "$rows"
  cp -r tests/data/evaluation/rows/bbh/cot-prompts "$rows/bbh"
  local tasks=(mmlu_virology@5 boolq hellaswag gsm8k bbh_cot_fewshot_boolean_expressions humaneval wikitext
    agieval_aqua_rat agieval_math arc_easy@2 ceval-valid_law@2 cmmlu_anatomy mmlu_virology_generative boolq-seq2seq mmlu_virology_continuation@3 humaneval_instruct gsm8k_cot)
  python3 -B tests/evaluation/agreement.py build/release/troupe "$venv/bin/python" "$model" "$rows" 8192 "${tasks[@]}" >&2
  python3 -B tests/evaluation/agreement.py build/release/troupe "$venv/bin/python" "$model" "$rows" 512 mmlu_virology@5 boolq hellaswag gsm8k wikitext >&2
  python3 -B tests/launch/evaluation_test.py build/release/troupe . all >&2
  [[ -z $evaluation ]] || python3 -B tests/evaluation/same_prompts.py build/release/troupe "$venv/bin/python" "$model" "$evaluation" mmlu_virology@5 \
    mmlu_virology_continuation@5 gsm8k gsm8k_cot bbh_cot_fewshot_boolean_expressions bbh_fewshot_boolean_expressions humaneval boolq >&2
}
run_package() { tests/package.sh; }
run_hosts() {
  cmake/install_packages.sh with-hosts
  python3 -B tests/hosts/runs.py build/release/troupe . long >&2
  python3 -B tests/hosts/faults.py build/release/troupe . >&2
}

record() { # record PART SECONDS: replaces the part's line of tests/long.log
  local log=tests/long.log commit
  commit=$(git rev-parse HEAD)
  [[ -z $(git status --porcelain --untracked-files=no) ]] || commit+=" with changes"
  touch "$log"
  { grep -v "^$1 " "$log" || true; } >"$log.new"
  echo "$1 passed on $(date -u +%Y-%m-%d) at $commit in $2 s" >>"$log.new"
  sort -o "$log" "$log.new"
  rm "$log.new"
}

# Every function run_PART above is a part, in the order of this file.
mapfile -t known < <(sed -n 's/^run_\([a-z_]*\)() {.*/\1/p' tests/long.sh)
parts=() schemas='' peers='' megatron='' evaluation='' latest='' faults=''
while (($#)); do
  part=$1
  parts+=("$part")
  shift
  if [[ $part == import && -d ${1:-} ]]; then
    scripts=$(realpath "$1")
    shift
  elif [[ $part == evaluation && -d ${1:-} ]]; then
    evaluation=$(realpath "$1")
    shift
  elif [[ $part == faults && ${1:-} =~ ^[0-9]+$ ]]; then
    faults=$1
    shift
  elif [[ $part == trainers && ${1:-} == --latest ]]; then
    latest=yes
    shift
  elif [[ $part == schemas ]]; then
    schemas=${1:-}
    shift || true
  elif [[ $part == peers ]]; then
    peers=${1:-}
    shift || true
  elif [[ $part == megatron ]]; then
    megatron=${1:-}
    shift || true
  fi
done
if ((${#parts[@]} == 0)); then
  for part in "${known[@]}"; do [[ $part == schemas || $part == peers || $part == megatron ]] || parts+=("$part"); done
  echo "tests/long.sh: without schemas, peers and megatron, which need folders" >&2
fi
cmake/install_packages.sh with-clang
cmake/fetch_arrow.sh build/release || true
cmake --preset release >&2
cmake --build --preset release -j "$(nproc)" >&2
for part in "${parts[@]}"; do
  if [[ " ${known[*]} " != *" $part "* ]]; then
    echo "tests/long.sh: no part is called $part; parts: ${known[*]}" >&2
    exit 2
  fi
  start=$SECONDS
  "run_$part"
  record "$part" $((SECONDS - start))
  echo "part $part: $((SECONDS - start)) s" >&2
done
