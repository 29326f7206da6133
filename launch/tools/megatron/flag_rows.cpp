#include "launch/tools/megatron/flag_rows.h"

namespace troupe::launch::tools::megatron {
namespace {

constexpr std::string_view flag_text = R"(
# network
num-layers | 1 | config num_hidden_layers |
hidden-size | 1 | config hidden_size |
ffn-hidden-size | 1 | config intermediate_size |
num-attention-heads | 1 | config num_attention_heads |
kv-channels | 1 | config head_dim |
num-query-groups | 1 | config num_key_value_heads | with --group-query-attention
group-query-attention | 0 | config num_key_value_heads |
max-position-embeddings | 1 | config max_position_embeddings | from --seq-length to the limit of config.json
position-embedding-type | 1 | config rope_theta | rope or none
use-rotary-position-embeddings | 0 | config rope_theta |
rotary-base | 1 | config rope_theta |
rotary-percent | 1 | config partial_rotary_factor |
rotary-seq-len-interpolation-factor, rotary-interleaved, no-position-embedding | * | no | config.json of the model describes its positions (rope_scaling)
make-vocab-size-divisible-by | 1 | config vocab_size |
padded-vocab-size, vocab-size | 1 | config vocab_size |
normalization | 1 | config rms_norm_eps | RMSNorm or LayerNorm
norm-epsilon | 1 | config rms_norm_eps |
swiglu | 0 | config hidden_act |
geglu, openai-gelu, gelu-tanh, squared-relu | 0 | config hidden_act |
untie-embeddings-and-output-weights | 0 | config tie_word_embeddings |
qk-layernorm | 0 | config architectures | norms of the heads of queries and keys
add-qkv-bias | 0 | config attention_bias |
disable-bias-linear | 0 | config mlp_bias |
add-dense-bias | 0 | config attention_bias | the bias of the attention's output
sliding-window | 1 | config sliding_window |
output-logit-softcapping | 1 | config final_logit_softcapping |
attn-logit-softcapping | 1 | config attn_logit_softcapping |
post-norm | 0 | config architectures | norms behind attention and MLP, too
apply-layernorm-1p, apply-residual-connection-post-layernorm, add-output-layer-bias, embed-layernorm, use-glm-rope, input-embeds-norm, add-rmsnorm-offset, query-pre-attn-scalar, interleave-sliding-window, scale-emb, dim-model-base, scale-depth | * | no | leave it out: config.json of the model describes it
output-layer-slice-num | 1 | so | the output layer is computed in slices
norm-topk-prob, use-fused-rmsnorm, use-fused-rotary-pos-emb, use-fused-swiglu | 0 | so | fused kernels with f32 sums

# logging
log-interval | 1 | import |
log-throughput, log-batch-size-to-tensorboard, log-validation-ppl-to-tensorboard, log-timers-to-tensorboard | 0 | so | metrics.jsonl and TensorBoard events have these values
log-params-norm, log-num-zeros-in-grad, log-progress, log-memory-to-tensorboard | 0 | no | not among the metrics of a run
timing-log-level | 1 | only 0 | the times of a step are in metrics.jsonl
timing-log-option | 1 | only minmax | the times of a step are in metrics.jsonl
tensorboard-log-interval | 1 | only 1 | every step is logged
tensorboard-queue-size | 1 | so | events are written at once
tensorboard-dir, wandb-project, wandb-exp-name, wandb-save-dir, logging-level | 1 | no | TensorBoard events and metrics.jsonl are in the folder of --save

# regularisation
attention-dropout, hidden-dropout | 1 | import | 0 where it is not given
weight-decay, clip-grad, adam-beta1, adam-beta2, adam-eps | 1 | import |
weight-decay-incr-style | 1 | only constant | one weight decay
start-weight-decay, end-weight-decay, sgd-momentum | 1 | no | AdamW with one weight decay

# training
micro-batch-size | 1 | key train.micro_batch_tokens | times --seq-length
global-batch-size, train-iters | 1 | import |
rampup-batch-size | 3 | import |
train-samples | 1 | no | give --train-iters
recompute-activations | 0 | import |
recompute-granularity | 1 | import |
recompute-method, recompute-num-layers | 1 | import |
recompute-in-advance | 0 | import |
distribute-saved-activations, no-check-for-nan-in-loss-and-grad, check-weight-hash-across-dp-replicas-interval | * | no | a gradient that is not finite ends the run; activations stay on their rank
profile | 0 | import |
profile-step-start, profile-step-end | 1 | import |
profile-ranks | + | import |
tp-comm-overlap | 0 | no | products and collectives are separate kernels
use-cpu-initialization | 0 | so | initial weights depend on seed and name, not on the device
empty-unused-memory-level | 1 | only 0 | no cache of freed memory
deterministic-mode | 0 | so | the same run always gives the same bits
calculate-per-token-loss | 0 | so | the loss is the mean over the tokens of a batch
exit-interval, exit-duration-in-mins | 1 | no | a signal saves and ends a run
exit-signal-handler | 0 | so | SIGTERM saves and ends a run
optimizer | 1 | only adam | AdamW is the only optimizer
dataloader-type | 1 | only single | the order of Megatron's GPTDataset
use-flash-attn, cross-entropy-loss-fusion, no-masked-softmax-fusion, no-bias-gelu-fusion, no-bias-swiglu-fusion, no-bias-dropout-fusion, no-rope-fusion, no-gradient-accumulation-fusion, manual-gc, use-mcore-models | 0 | so | one kernel for each operation, one implementation of each layer
manual-gc-interval | 1 | so | there is no garbage collector
sequence-parallel | 0 | import |
use-legacy-models | 0 | no | the layers are those of Megatron core

# initialisation
seed, init-method-std | 1 | import |
data-parallel-random-init, init-method-xavier-uniform | 0 | no | initial weights are normal, the same on every replica

# learning rate
lr, lr-decay-style, lr-decay-iters, lr-wsd-decay-iters, lr-wsd-decay-style, lr-warmup-fraction, lr-warmup-iters, lr-warmup-init, min-lr | 1 | import |
lr-decay-samples, lr-wsd-decay-samples, lr-warmup-samples | 1 | no | schedules count steps: give the flag with -iters
decoupled-lr, decoupled-min-lr | 1 | no | one learning rate for all weights
override-opt_param-scheduler | 0 | so | a resumed run takes the schedule of its command line
use-checkpoint-opt_param-scheduler | 0 | no | a resumed run takes the schedule of its command line

# checkpointing
save | 1 | program output |
load, pretrained-checkpoint | 1 | program model |
save-interval | 1 | import |
finetune, no-load-optim, no-load-rng | 0 | program model | only the weights of --load are read
no-save-optim | 0 | key train.save_only_model |
no-save-rng | 0 | so | there is no generator state: draws are keyed by seed and step
ckpt-step | 1 | no | name a checkpoint's folder in --load
use-checkpoint-args, exit-on-missing-checkpoint, auto-detect-ckpt-format, no-initialization | 0 | so | config.json describes --load, which must exist
use-dist-ckpt, ckpt-fully-parallel-save, async-save, ckpt-assume-constant-structure | 0 | no | checkpoints have the format torch
dist-ckpt-format | 1 | no | checkpoints have the format torch

# mixed precision
bf16 | 0 | import |
fp16 | 0 | program train.dtype | with a dynamic loss scale
initial-loss-scale | 1 | program train.loss_scale.initial | a positive number; of --fp16 only, as in Megatron
min-loss-scale | 1 | program train.loss_scale.minimum | of --fp16 only, as in Megatron
loss-scale-window | 1 | program train.loss_scale.window | of --fp16 only, as in Megatron
hysteresis | 1 | program train.loss_scale.hysteresis | of --fp16 only, as in Megatron
fp16-lm-cross-entropy | 0 | so | losses are computed in f64 from logits in f32
loss-scale | 1 | no | the loss scale of --fp16 is dynamic: give --initial-loss-scale
fp32-residual-connection, apply-query-key-layer-scaling, attention-softmax-in-fp32, accumulate-allreduce-grads-in-fp32 | 0 | so | sums, softmax, residuals and gradients are f32
reuse-fp32-param | 0 | import | of --bf16 only

# distributed
tensor-model-parallel-size, pipeline-model-parallel-size, num-layers-per-virtual-pipeline-stage, context-parallel-size, context-parallel-algo, ulysses-degree-in-cp, cp-window-size | 1 | import |
num-layer-list | + | import |
noop-layers | + | import |
use-distributed-optimizer, overlap-grad-reduce, overlap-param-gather, delay-param-gather, ddp-average-in-collective, no-delay-grad-reduce, use-tp-pp-dp-mapping, standalone-embedding-stage | 0 | import |
ddp-bucket-size | 1 | import |
no-overlap-p2p-communication, no-scatter-gather-tensors-in-pipeline, defer-embedding-wgrad-compute | 0 | no | the stages of a pipeline exchange whole activations
distributed-backend | 1 | so | ranks communicate over MPI
distributed-timeout-minutes | 1 | key parallel.timeout | in seconds
local-rank | 1 | so | mpirun numbers the ranks

# validation
eval-iters, eval-interval | 1 | import |
test-mode, skip-train | 0 | no | a run trains; troupe logprobs evaluates a model

# data
data-path, train-data-path, valid-data-path | + | import |
test-data-path | + | no | evaluate a trained model by itself
split, seq-length | 1 | import |
data-cache-path | 1 | so | the order of samples is computed when a run starts
no-mmap-bin-files, no-create-attention-mask-in-dataloader | 0 | so | no attention masks are made, and files are read as they are needed
mock-data, vocab-file, merge-file, tokenizer-model, tokenizer-kwargs | * | no | data and a tokenizer's folder: --data-path, --tokenizer-name-or-path
vocab-extra-ids | 1 | only 0 | the tokenizer has all tokens
num-workers, num-dataset-builder-threads | 1 | so | rows are read while a step computes
tokenizer-type | 1 | only PretrainedFromHF HuggingFaceTokenizer | a tokenizer is read from its folder
tokenizer-name-or-path | 1 | program model |
tokenizer-padding-side | 1 | only right | sequences are packed without padding
tokenizer-not-use-fast, variable-seq-lengths, padded-samples, no-shared-storage, neat-pack | 0 | so | sequences are packed without padding and never attend to each other
reset-position-ids, reset-attention-mask, eod-mask-loss, no-shuffle, full-shuffle-instruction-dataset | 0 | import |
is-instruction-dataset, is-pairwise-dataset | 0 | program algorithm | the rows that --stage reads
dataset-additional-keys | + | so | every column is kept
stage, prompt-type, prompt-type-path | 1 | import |
sample-rate | 1 | only 1 | all samples

# fine-tuning
lora-r, lora-alpha | 1 | import |
lora-target-modules | + | import |
lora-load | 1 | import |
lora-fusion | 0 | so | only the adapter is saved
dpo-beta, dpo-loss-type, dpo-label-smoothing, pref-ftx, ref-model, simpo-beta, gamma-beta-ratio, simpo-loss-type, simpo-label-smoothing, placeholder-token | 1 | import |
reward-tokens | + | import |

# inference
task | * | program do_sample num_beams | greedy, do_sample, beam_search, beam_search_with_sampling, chat; none: all in turn
top-p, top-k, temperature | 1 | program do_sample | of the tasks that sample: 0.95, 50 and 0.7
max-new-tokens | 1 | program max_new_tokens | 128
num-beams | 1 | program num_beams | of the beam searches: 2
max-length | 1 | so | --max-new-tokens decides, as in MindSpeed-LLM
hf-chat-template | 0 | program chat_template | of the task chat: the template of the model's folder
add-eos-token | + | program stop_token_ids | tokens that end an answer as well
history-turns | 1 | program history_turns | earlier turns of the task chat: 3
use-kv-cache, stream | 0 | so | keys and values are cached, and text is printed as it is found

# mixtures of experts
expert-model-parallel-size, num-experts, moe-router-load-balancing-type, moe-router-topk, moe-aux-loss-coeff, moe-z-loss-coeff, moe-input-jitter-eps, moe-token-dispatcher-type, moe-expert-capacity-factor, moe-token-drop-policy | 1 | no | mixtures of experts and their division over ranks are not supported: choose a dense model
moe-grouped-gemm, moe-router-pre-softmax, moe-per-layer-logging, moe-pad-expert-input-to-capacity, moe-layer-recompute, moe-extended-tp | 0 | no | mixtures of experts and their division over ranks are not supported: choose a dense model

# other
spec | 2 | so | config.json of the model describes its layers
yaml-cfg, log-straggler, enable-one-logger | * | no | the flags of this command line are all settings
)";

}  // namespace

std::string_view flag_rows() {
  return flag_text;
}

}  // namespace troupe::launch::tools::megatron
