# Written after Ascend/MindSpeed-LLM examples/mcore/qwen25/dpo_qwen25_7b_ptd.sh (the groups of options of its scripts).
CKPT_LOAD_DIR="./qwen25-hf"
DATA_PATH="./dataset/pairs.jsonl"
TP=2

torchrun --nproc_per_node 8 --nnodes 1 posttrain_gpt.py \
    --stage dpo --dpo-beta 0.1 --dpo-loss-type sigmoid --dpo-label-smoothing 0.0 --pref-ftx 0.1 --ref-model ./ref \
    --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size 1 --sequence-parallel --use-mcore-models \
    --num-layers 28 --hidden-size 3584 --seq-length 4096 --micro-batch-size 1 --global-batch-size 64 --train-iters 200 \
    --lr 1.0e-6 --min-lr 1.0e-7 --lr-decay-style cosine --lr-warmup-fraction 0.1 --weight-decay 0.0 --clip-grad 1.0 \
    --adam-beta1 0.9 --adam-beta2 0.999 --initial-loss-scale 1 --bf16 --no-gradient-accumulation-fusion \
    --is-pairwise-dataset --prompt-type qwen --data-path $DATA_PATH --split 100,0,0 --tokenizer-type PretrainedFromHF \
    --tokenizer-name-or-path $CKPT_LOAD_DIR --log-interval 1 --save-interval 50 --load $CKPT_LOAD_DIR --save ./out \
    --distributed-backend nccl --finetune --no-load-optim --no-load-rng | tee logs/dpo.log
