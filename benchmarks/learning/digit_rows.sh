# What the learning proofs on the digit task share: rows, a warmed-up model, accuracy. Sourced, from the root of the tree.
# The task: "7,4:9,5S" asks for the 5 numbers that continue with the same step, modulo 9: "1,7,4,1,7".
set -euo pipefail
shopt -s inherit_errexit
troupe=${TROUPE:-build/release/troupe}
rows=launch/quickstart

# longer LEAST < ROWS: the rows whose answers have at least LEAST numbers.
longer() { awk -v least="$1" '{ match($0, /"answer": "[^"]*"/); a = substr($0, RSTART + 11, RLENGTH - 12); if (split(a, n, ",") >= least) print }'; }

# wrong_answers SEED < ROWS > PAIRS: each answer eight times as chosen; as rejected the same with some numbers changed, one left out or one
# too many.
wrong_answers() {
  awk -v seed="$1" 'BEGIN { srand(seed) }
    { match($0, /"prompt": "[^"]*"/); p = substr($0, RSTART + 11, RLENGTH - 12); match($0, /"answer": "[^"]*"/); a = substr($0, RSTART + 11, RLENGTH - 12)
      count = split(a, n, ","); if (count < 2) next
      for (copy = 0; copy < 8; copy++) {
        how = int(rand() * 6); at = 1 + int(rand() * count); wrongs = rand(); bad = ""
        for (i = 1; i <= count - (how == 0); i++)
          bad = bad (i > 1 ? "," : "") (how > 1 && (i == at || rand() < wrongs) ? (n[i] + 1 + int(rand() * 8)) % 9 : n[i])
        if (how == 1) bad = bad "," int(rand() * 9)
        printf "{\"prompt\": \"%s\", \"chosen\": \"%s\", \"rejected\": \"%s\"}\n", p, a, bad } }'
}

# labelled_steps SEED < ROWS > STEPS: sixteen answers per row, with some numbers changed and sometimes too many, each number labelled
# correct if it is the expected one at its position. Error rates differ between answers, and overlong answers continue the sequence
# like those of a policy: PPO exploits errors that are not in the training data of the reward model.
labelled_steps() {
  awk -v seed="$1" 'BEGIN { srand(seed) }
    { match($0, /"prompt": "[^"]*"/); p = substr($0, RSTART + 11, RLENGTH - 12); split(p, given, /[,:S]/); if (given[4] < 1) next
      for (copy = 0; copy < 16; copy++) {
        more = rand() < 0.3 ? 1 + int(rand() * 4) : 0; wrongs = rand(); right = given[2]; texts = labels = ""
        for (i = 1; i <= given[4] + more; i++) {
          off = rand() < wrongs ? 1 + int(rand() * (given[3] - 1)) : 0
          right = (right + given[2] - given[1] + given[3]) % given[3]
          texts = texts (i > 1 ? ", " : "") "\"" (right + off) % given[3] "\""
          labels = labels (i > 1 ? ", " : "") (off || i > given[4] ? "false" : "true") }
        printf "{\"prompt\": \"%s\", \"completions\": [%s], \"labels\": [%s]}\n", p, texts, labels } }'
}

# once NAME COMMAND...: runs the command, which writes $output/NAME, unless it was done before.
once() {
  [[ -e $output/$1.done ]] && return
  rm -rf "${output:?}/$1"
  "${@:2}" >&2
  touch "$output/$1.done"
}

# warm_up OUTPUT STEPS: a policy that answers some prompts right.
warm_up() {
  "$troupe" train --config $rows/sft.yaml --set data.path=$rows/train.jsonl --set train.steps="$2" --set output="$1" --set train.seed=0 >&2
}

# accuracy MODEL ROWS: the fraction of the rows that it completes exactly right, greedily.
accuracy() {
  paste -d '\n' "$2" <("$troupe" generate --model "$1" --max-new-tokens 32 <"$2") | awk '
    NR % 2 { match($0, /"answer": "[^"]*"/); want = substr($0, RSTART + 11, RLENGTH - 12); next }
    { got = match($0, /"text":"[^"]*"/) ? substr($0, RSTART + 8, RLENGTH - 9) : "?"; right += got == want; rows++ }
    END { if (rows == 0) exit 1; printf "%.3f\n", right / rows }'
}

# metric FILE NAME FIRST LAST: the mean of a metric over these steps of metrics.jsonl.
metric() {
  awk -v name="\"$2\":" -v first="$3" -v last="$4" 'NR >= first && NR <= last { at = index($0, name); if (at) { sum += substr($0, at + length(name)) + 0; n++ } }
    END { if (n == 0) exit 1; printf "%.4f\n", sum / n }' "$1"
}
