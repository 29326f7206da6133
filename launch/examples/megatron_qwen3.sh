#!/bin/bash
# The walk-through of a dense Qwen3 with Megatron's command lines: tokenize, convert, pretrain on
# two pipeline stages, fine-tune, and convert back. Set MODEL (a Hugging Face folder), DATA (text,
# jsonl with "text"), ROWS (instructions, Alpaca's columns) and WORK (a new folder). The sizes are
# those of Qwen3-1.7B; variables change them for another model.
set -euo pipefail
MODEL=${MODEL:-models/Qwen3-1.7B}
DATA=${DATA:-data/enwiki.jsonl}
ROWS=${ROWS:-data/alpaca.jsonl}
WORK=${WORK:-runs/megatron_qwen3}
PROGRAMS=${PROGRAMS:-build/release/megatron}
read -ra MPIRUN <<<"${MPIRUN:-mpirun -n 2}"

TP=1
PP=2
MBS=1
GBS=${GBS:-32}
SEQ_LENGTH=${SEQ_LENGTH:-4096}
TRAIN_ITERS=${TRAIN_ITERS:-2000}
mkdir -p "$WORK"

"$PROGRAMS/preprocess_data" --input "$DATA" --tokenizer-name-or-path "$MODEL" \
  --tokenizer-type PretrainedFromHF --output-prefix "$WORK/enwiki" --json-keys text --workers 4 \
  --log-interval 1000
"$PROGRAMS/preprocess_data" --input "$ROWS" --tokenizer-name-or-path "$MODEL" \
  --tokenizer-type PretrainedFromHF --output-prefix "$WORK/rows" \
  --handler-name AlpacaStyleInstructionHandler --prompt-type "${PROMPT_TYPE:-qwen3}" --workers 4

"$PROGRAMS/convert_ckpt_v2" --load-model-type hf --save-model-type mg \
  --target-tensor-parallel-size $TP --target-pipeline-parallel-size $PP --load-dir "$MODEL" \
  --save-dir "$WORK/mcore" --model-type-hf qwen3

OPTIMIZE_ARGS=(
  --use-flash-attn
  --use-fused-rotary-pos-emb
  --use-rotary-position-embeddings
  --use-fused-swiglu
  --use-fused-rmsnorm
  --no-masked-softmax-fusion
  --use-distributed-optimizer
)
TRAIN_ARGS=(
  --micro-batch-size $MBS
  --global-batch-size "$GBS"
  --lr 1.25e-6
  --lr-decay-style cosine
  --min-lr 1.25e-7
  --weight-decay 1e-1
  --lr-warmup-fraction 0.01
  --attention-dropout 0.0
  --init-method-std 0.01
  --hidden-dropout 0.0
  --clip-grad 1.0
  --adam-beta1 0.9
  --adam-beta2 0.95
  --initial-loss-scale 4096
  --seed 42
  --bf16
  --train-iters "$TRAIN_ITERS"
  --seq-length "$SEQ_LENGTH"
  --no-shared-storage
)
MODEL_PARALLEL_ARGS=(
  --tensor-model-parallel-size $TP
  --pipeline-model-parallel-size $PP
)
GPT_ARGS=(
  --use-mcore-models
  --spec mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec
  --kv-channels "${HEAD_SIZE:-128}"
  --qk-layernorm
  --norm-topk-prob
  --tokenizer-name-or-path "$MODEL"
  --max-position-embeddings "$SEQ_LENGTH"
  --num-layers "${LAYERS:-28}"
  --hidden-size "${HIDDEN:-2048}"
  --ffn-hidden-size "${INNER:-6144}"
  --num-attention-heads "${HEADS:-16}"
  --tokenizer-type PretrainedFromHF
  --make-vocab-size-divisible-by 1
  --padded-vocab-size "${VOCABULARY:-151936}"
  --rotary-base 1000000
  --norm-epsilon 1e-6
  --disable-bias-linear
  --position-embedding-type rope
  --normalization RMSNorm
  --swiglu
  --attention-softmax-in-fp32
  --no-gradient-accumulation-fusion
  --group-query-attention
  --num-query-groups "${KV_HEADS:-8}"
)
OUTPUT_ARGS=(
  --log-interval 1
  --save-interval "$TRAIN_ITERS"
  --eval-interval "$TRAIN_ITERS"
  --eval-iters 0
  --no-load-optim
  --no-load-rng
)

"${MPIRUN[@]}" "$PROGRAMS/pretrain_gpt" \
  "${GPT_ARGS[@]}" \
  --data-path "$WORK/enwiki_text_document" --split 100,0,0 \
  "${OUTPUT_ARGS[@]}" \
  "${OPTIMIZE_ARGS[@]}" \
  "${TRAIN_ARGS[@]}" \
  "${MODEL_PARALLEL_ARGS[@]}" \
  --distributed-backend nccl \
  --load "$WORK/mcore" \
  --save "$WORK/pretrained" |
  tee "$WORK/pretrain.log"

"${MPIRUN[@]}" "$PROGRAMS/posttrain_gpt" \
  --stage sft --is-instruction-dataset --finetune \
  "${GPT_ARGS[@]}" \
  --data-path "$WORK/rows" \
  "${OUTPUT_ARGS[@]}" \
  "${OPTIMIZE_ARGS[@]}" \
  "${TRAIN_ARGS[@]}" \
  "${MODEL_PARALLEL_ARGS[@]}" \
  --distributed-backend nccl \
  --load "$WORK/pretrained" \
  --save "$WORK/tuned" |
  tee "$WORK/tune.log"

"$PROGRAMS/convert_ckpt_v2" --load-model-type mg --save-model-type hf --load-dir "$WORK/tuned" \
  --save-dir "$MODEL" --model-type-hf qwen3
