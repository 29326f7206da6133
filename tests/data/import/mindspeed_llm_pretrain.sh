# Written after Ascend/MindSpeed-LLM examples/mcore/qwen3/pretrain_qwen3_1point7b_4K_ptd.sh (the groups of options of its scripts).
CKPT_LOAD_DIR="./qwen3-hf"
CKPT_SAVE_DIR="./out"
DATA_PATH="./dataset/enwiki_text_document"
TP=1
SEQ_LENGTH=4096
TRAIN_ITERS=2000

OPTIMIZE_ARGS="
    --use-flash-attn --use-fused-rotary-pos-emb --use-rotary-position-embeddings --use-fused-swiglu --use-fused-rmsnorm \
    --no-masked-softmax-fusion --use-distributed-optimizer
"
TRAIN_ARGS="
    --micro-batch-size 1 --global-batch-size 32 --rampup-batch-size 8 8 1000 --lr 1.25e-6 --lr-decay-style cosine --min-lr 1.25e-7 \
    --weight-decay 1e-1 --lr-warmup-fraction 0.01 --attention-dropout 0.0 --init-method-std 0.01 --hidden-dropout 0.0 --clip-grad 1.0 \
    --adam-beta1 0.9 --adam-beta2 0.95 --initial-loss-scale 4096 --seed 42 --bf16 --train-iters ${TRAIN_ITERS} --seq-length ${SEQ_LENGTH}
"
torchrun --nproc_per_node 2 --nnodes 1 pretrain_gpt.py $OPTIMIZE_ARGS $TRAIN_ARGS \
    --tensor-model-parallel-size ${TP} --tokenizer-name-or-path ${CKPT_LOAD_DIR} --num-layers 28 --hidden-size 2048 \
    --data-path 0.3 $DATA_PATH 0.7 ./dataset/code_text_document --split 100,0,0 --reset-position-ids --reset-attention-mask --eod-mask-loss \
    --log-interval 1 --save-interval ${TRAIN_ITERS} --eval-interval ${TRAIN_ITERS} --eval-iters 0 --no-load-optim --no-load-rng \
    --save $CKPT_SAVE_DIR | tee logs/pretrain.log
