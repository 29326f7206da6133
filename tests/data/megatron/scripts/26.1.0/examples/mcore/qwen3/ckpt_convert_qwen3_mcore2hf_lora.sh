# 修改 ascend-toolkit 路径
source /usr/local/Ascend/ascend-toolkit/set_env.sh
export CUDA_DEVICE_MAX_CONNECTIONS=1

python convert_ckpt_v2.py \
    --load-model-type mg \
    --save-model-type hf \
    --lora-r 8 \
    --lora-alpha 16 \
    --lora-target-modules linear_qkv linear_proj linear_fc1 linear_fc2 \
    --load-dir ./model_weights/qwen3_mcore/ \
    --lora-load ./ckpt/qwen3_lora \
    --save-dir ./model_from_hf/qwen3_hf/ \
    --hf-cfg-dir ./model_from_hf/qwen3_hf/ \
    --model-type-hf qwen3
