#!/bin/bash
# The walk-through of a Qwen2.5 with Megatron's command lines on four ranks (tensor 2 x pipeline 2):
# convert, tokenize two columns, pretrain, and convert back. Set MODEL (a Hugging Face folder), DATA
# (jsonl with the columns instruction and output) and WORK (a new folder). The sizes are those of
# Qwen2.5-Coder-7B; variables change them for another model.
set -euo pipefail
MODEL=${MODEL:-models/Qwen2.5-Coder-7B}
DATA=${DATA:-data/EvolInstruct-900.jsonl}
WORK=${WORK:-runs/megatron_qwen2.5}
PROGRAMS=${PROGRAMS:-build/release/megatron}
read -ra MPIRUN <<<"${MPIRUN:-mpirun -n 4}"
TP=2
PP=2
SEQ_LENGTH=${SEQ_LENGTH:-4096}
TRAIN_ITERS=${TRAIN_ITERS:-2000}
mkdir -p "$WORK"

"$PROGRAMS/convert_ckpt" \
  --use-mcore-models \
  --model-type GPT \
  --load-model-type hf \
  --save-model-type mg \
  --target-tensor-parallel-size $TP \
  --target-pipeline-parallel-size $PP \
  --add-qkv-bias \
  --load-dir "$MODEL" \
  --save-dir "$WORK/mcore" \
  --tokenizer-model "$MODEL/tokenizer.json" \
  --model-type-hf llama2 \
  --params-dtype bf16

"$PROGRAMS/preprocess_data" \
  --input "$DATA" \
  --tokenizer-name-or-path "$MODEL" \
  --tokenizer-type PretrainedFromHF \
  --output-prefix "$WORK/EvolInstruct-900" \
  --json-keys instruction output \
  --workers 4 \
  --log-interval 1000

"${MPIRUN[@]}" "$PROGRAMS/pretrain_gpt" \
  --use-mcore-models \
  --tensor-model-parallel-size $TP \
  --pipeline-model-parallel-size $PP \
  --use-distributed-optimizer \
  --use-flash-attn \
  --use-fused-rmsnorm \
  --use-fused-swiglu \
  --use-fused-rotary-pos-emb \
  --tokenizer-type PretrainedFromHF \
  --tokenizer-name-or-path "$MODEL" \
  --num-layers "${LAYERS:-28}" \
  --hidden-size "${HIDDEN:-3584}" \
  --ffn-hidden-size "${INNER:-18944}" \
  --num-attention-heads "${HEADS:-28}" \
  --group-query-attention \
  --num-query-groups "${KV_HEADS:-4}" \
  --add-qkv-bias \
  --disable-bias-linear \
  --untie-embeddings-and-output-weights \
  --position-embedding-type rope \
  --rotary-base 1000000 \
  --normalization RMSNorm \
  --norm-epsilon 1e-6 \
  --swiglu \
  --make-vocab-size-divisible-by 1 \
  --padded-vocab-size "${VOCABULARY:-152064}" \
  --max-position-embeddings "$SEQ_LENGTH" \
  --seq-length "$SEQ_LENGTH" \
  --micro-batch-size 1 \
  --global-batch-size "${GBS:-32}" \
  --train-iters "$TRAIN_ITERS" \
  --lr 1.25e-6 \
  --min-lr 1.25e-7 \
  --lr-decay-style cosine \
  --lr-warmup-fraction 0.01 \
  --weight-decay 1e-1 \
  --adam-beta1 0.9 \
  --adam-beta2 0.95 \
  --clip-grad 1.0 \
  --attention-dropout 0.0 \
  --hidden-dropout 0.0 \
  --initial-loss-scale 4096 \
  --bf16 \
  --data-path "$WORK/EvolInstruct-900_instruction_document" \
  "$WORK/EvolInstruct-900_output_document" \
  --split 100,0,0 \
  --log-interval 1 \
  --save-interval "$TRAIN_ITERS" \
  --eval-interval "$TRAIN_ITERS" \
  --eval-iters 0 \
  --no-load-optim \
  --no-load-rng \
  --distributed-backend nccl \
  --load "$WORK/mcore" \
  --save "$WORK/pretrained" |
  tee "$WORK/pretrain.log"

"$PROGRAMS/convert_ckpt" \
  --use-mcore-models \
  --model-type GPT \
  --load-model-type mg \
  --save-model-type hf \
  --target-tensor-parallel-size 1 \
  --target-pipeline-parallel-size 1 \
  --add-qkv-bias \
  --load-dir "$WORK/pretrained" \
  --save-dir "$MODEL" \
  --model-type-hf llama2
