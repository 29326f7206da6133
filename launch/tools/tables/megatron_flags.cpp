// The flags of Megatron core and MindSpeed-LLM that do not follow from a row of mindspeed.cpp.
#include "launch/tools/tables/tool_texts.h"

namespace troupe::launch::tools::tables {

constinit const std::string_view megatron_flags_text = R"(
# Method, model and output
> tokenizer-name-or-path:1 | program model |
> load:1, pretrained-checkpoint:1 | program model |
> save:1 | program output |
> yaml-cfg:*, log-straggler:*, enable-one-logger:* | no | the flags of this command line are all settings
> finetune:0, no-load-optim:0, no-load-rng:0 | program model | only the weights of --load are read
> ckpt-step:1 | no | name a checkpoint's folder in --load
> use-checkpoint-args:0, exit-on-missing-checkpoint:0, no-initialization:0 | so | config.json describes --load, which must exist
> no-save-optim:0 | key train.save_only_model |
> no-save-rng:0 | so | there is no generator state: draws are keyed by seed and step
> use-dist-ckpt:0, ckpt-fully-parallel-save:0, async-save:0, ckpt-assume-constant-structure:0 | no | checkpoints in the format torch_dist are not written
> ckpt-format:1 | only torch | checkpoints in the format torch_dist are neither read nor written
> dist-ckpt-format:1 | no | checkpoints in the format torch_dist are not written
> log-params-norm:0, log-num-zeros-in-grad:0, log-progress:0, log-memory-to-tensorboard:0 | no | not among the metrics of a run
> timing-log-level:1 | only 0 | the times of a step are in metrics.jsonl
> timing-log-option:1 | only minmax | the times of a step are in metrics.jsonl
> tensorboard-log-interval:1 | only 1 | every step is logged
> tensorboard-queue-size:1 | so | events are written at once
> tensorboard-dir:1, wandb-project:1, wandb-exp-name:1, wandb-save-dir:1, logging-level:1 | no | TensorBoard events and metrics.jsonl are in the folder of --save
> exit-signal-handler:0 | so | SIGTERM saves and ends a run
> spec:2 | so | config.json of the model describes its layers
> load-checkpoint-loosely:0 | none | --load must have every tensor of the model; a reward model gets a new score head
> enable-hf2mg-convert:0 | so | --load takes a Hugging Face folder as it is
> enable-mg2hf-convert:0 | so | the folder SAVE/latest is a Hugging Face folder
> hf-cfg-dir:1 | so | a checkpoint of a run has the config.json of its model; of convert: the folder whose config.json the result has
> model-type-hf:1 | so | config.json of the model names its family
> no-shared-storage:0 | so | a checkpoint is written by the ranks that hold its tensors, and read on one host
> auto-detect-ckpt-format:0 | so | the format of --load is detected from its files

# Data
> test-data-path:+ | no | evaluate a trained model by itself
> dataloader-type:1 | only single | the order of Megatron's GPTDataset
> num-workers:1, num-dataset-builder-threads:1 | so | rows are read while a step computes
> mock-data:*, vocab-file:*, merge-file:*, tokenizer-kwargs:* | no | data and a tokenizer's folder: --data-path, --tokenizer-name-or-path
> tokenizer-model:1 | program model | a file of the folder that is read in place of --tokenizer-name-or-path
> sample-rate:1 | only 1 | all samples
> max-position-embeddings:1 | config max_position_embeddings | at least --seq-length; above the limit of config.json it is model_overrides.max_position_embeddings
> is-instruction-dataset:0, is-pairwise-dataset:0 | program algorithm | the rows that --stage reads
> vocab-extra-ids:1 | only 0 | the tokenizer has all tokens
> tokenizer-type:1 | only PretrainedFromHF HuggingFaceTokenizer Llama2Tokenizer | a tokenizer is read from its folder
> tokenizer-padding-side:1 | none | sequences are packed without padding, on neither side
> tokenizer-not-use-fast:0 | so | one implementation gives the ids of the slow tokenizers and of the fast ones
> workers:1 | none | rows are tokenized while a step computes; of preprocess: its threads
> overwrite-cache:0 | so | data is not kept between runs
> pad-to-multiple-of:1, no-pad-to-seq-lengths:0, padded-samples:0, variable-seq-lengths:0 | so | sequences have no padding, and no token of padding is trained on
> neat-pack:0, no-create-attention-mask-in-dataloader:0 | so | packed sequences never attend to each other
> pack:0 | no | rows that are packed into one of --seq-length tokens, which counts as one of --global-batch-size: each row counts here
> enable-thinking:1 | no | templates that add or remove the thoughts of an answer (ReasoningTemplate) are not supported
> attention-mask-type:1, cp-attention-mask-type:1 | none | attention is causal within each sequence, which general masks say, too
> cut-max-seqlen:0 | so | a row is never longer than --seq-length

# Training
> train-samples:1 | no | give --train-iters
> lr-decay-samples:1, lr-warmup-samples:1, lr-wsd-decay-samples:1 | no | schedules count steps: give the flag with -iters
> override-opt_param-scheduler:0 | so | a resumed run takes the schedule of its command line
> use-checkpoint-opt_param-scheduler:0 | no | a resumed run takes the schedule of its command line
> weight-decay-incr-style:1 | only constant | one weight decay
> sgd-momentum:1 | no | AdamW with one weight decay
> optimizer:1 | only adam | AdamW is the only optimizer
> fp16:0 | program train.dtype | with a dynamic loss scale
> initial-loss-scale:1 train.loss_scale.initial, min-loss-scale:1 train.loss_scale.minimum, loss-scale-window:1 train.loss_scale.window, hysteresis:1 train.loss_scale.hysteresis | program | a positive number; of --fp16 only, as in Megatron
> loss-scale:1 | no | the loss scale of --fp16 is dynamic: give --initial-loss-scale
> no-overlap-p2p-communication:0, no-scatter-gather-tensors-in-pipeline:0, defer-embedding-wgrad-compute:0 | none | another order of the same exchanges between the stages of a pipeline
> distribute-saved-activations:0 | none | activations stay on their rank
> no-check-for-nan-in-loss-and-grad:0 | none | a gradient that is not finite ends the run in any case
> check-weight-hash-across-dp-replicas-interval:1 | so | replicas have equal bits
> expert-model-parallel-size:1, expert-tensor-parallel-size:1 | only 1 | mixtures of experts and their division over ranks are not supported: choose a dense model
> use-fused-rmsnorm:0, use-fused-rotary-pos-emb:0, use-fused-swiglu:0 | so | norms, rotary positions and SwiGLU are single kernels with f32 sums
> moe-router-load-balancing-type:1, moe-router-topk:1, moe-aux-loss-coeff:1, moe-z-loss-coeff:1, moe-input-jitter-eps:1, moe-token-dispatcher-type:1, moe-expert-capacity-factor:1, moe-token-drop-policy:1, moe-router-pre-softmax:0, moe-per-layer-logging:0, moe-pad-expert-input-to-capacity:0, moe-layer-recompute:0, moe-comm-aux-loss-coeff:1, moe-device-level-aux-loss-coeff:1, moe-router-dtype:1, moe-router-enable-expert-bias:0, moe-router-group-topk:1, moe-router-num-groups:1, moe-router-score-function:1, moe-router-topk-scaling-factor:1, moe-revert-type-after-topk:0, norm-topk-prob:0, router-gating-in-fp32:0, topk-softmax-in-fp32:0, seq-aux:0, routed-scaling-factor:1, topk-group:1, input-jitter:0 | none | routing of mixtures of experts only, which --num-experts asks for
> moe-ffn-hidden-size:1, moe-intermediate-size:1, moe-shared-expert-intermediate-size:1, n-shared-experts:1, shared-expert-gate:0, first-k-dense-replace:1, moe-layer-freq:1, num-zero-experts:1, n-hash-layers:1 | none | layers of mixtures of experts only, which --num-experts asks for
> moe-grouped-gemm:0, moe-extended-tp:0, moe-alltoall-overlap-comm:0, moe-fb-overlap:0, moe-permutation-async-comm:0, moe-permute-fusion:0, moe-tp-extend-ep:0, moe-zero-memory:1, use-fused-moe-token-permute-and-unpermute:0 | none | kernels and exchanges of mixtures of experts only, which --num-experts asks for
> num-layers:1 num_hidden_layers, hidden-size:1 hidden_size, ffn-hidden-size:1 intermediate_size, num-attention-heads:1 num_attention_heads, kv-channels:1 head_dim, group-query-attention:0 num_key_value_heads, use-rotary-position-embeddings:0 rope_theta, rotary-percent:1 partial_rotary_factor, make-vocab-size-divisible-by:1 vocab_size, padded-vocab-size:1 vocab_size, vocab-size:1 vocab_size, swiglu:0 hidden_act, geglu:0 hidden_act, openai-gelu:0 hidden_act, gelu-tanh:0 hidden_act, squared-relu:0 hidden_act, untie-embeddings-and-output-weights:0 tie_word_embeddings, add-qkv-bias:0 attention_bias, disable-bias-linear:0 mlp_bias, sliding-window:1 sliding_window, output-logit-softcapping:1 final_logit_softcapping, attn-logit-softcapping:1 attn_logit_softcapping | config |
> norm-epsilon:1 | config rms_norm_eps | counts in place of the value of config.json; where it is left out, 1e-5 | 1e-5
> rotary-base:1 | config rope_theta | counts in place of the value of config.json; where it is left out, 10000 | 10000
> attention-dropout:1 train.attention_dropout, hidden-dropout:1 train.hidden_dropout | key | 0.1 where it is left out | 0.1
> num-query-groups:1 | config num_key_value_heads | with --group-query-attention
> position-embedding-type:1 | config rope_theta | rope or none
> rotary-seq-len-interpolation-factor:1, rotary-interleaved:0, no-position-embedding:0 | no | config.json of the model describes its positions (rope_scaling)
> rope-scaling-type:1 rope_scaling.rope_type, rope-scaling-factor:1 rope_scaling.factor, dynamic-factor:1 rope_scaling.factor, low-freq-factor:1 rope_scaling.low_freq_factor, high-freq-factor:1 rope_scaling.high_freq_factor, original-max-position-embeddings:1 rope_scaling.original_max_position_embeddings, rope-scaling-original-max-position-embeddings:1 rope_scaling.original_max_position_embeddings, rope-scaling-beta-fast:1 rope_scaling.beta_fast, rope-scaling-beta-slow:1 rope_scaling.beta_slow, beta-fast:1 rope_scaling.beta_fast, beta-slow:1 rope_scaling.beta_slow, rope-scaling-mscale:1 rope_scaling.mscale, rope-scaling-mscale-all-dim:1 rope_scaling.mscale_all_dim, long-factor:1 rope_scaling.long_factor, short-factor:1 rope_scaling.short_factor, long-mscale:1 rope_scaling.long_mscale, short-mscale:1 rope_scaling.short_mscale | field | scaling of rotary positions
> longrope-freqs-type:1 | only outer | the factors of longrope divide the frequencies
> normalization:1 | config rms_norm_eps | RMSNorm or LayerNorm
> qk-layernorm:0 | config architectures | norms of the heads of queries and keys
> add-dense-bias:0 | config attention_bias | the bias of the attention's output
> post-norm:0 | config architectures | norms behind attention and MLP, too
> apply-layernorm-1p:0, apply-residual-connection-post-layernorm:0, add-output-layer-bias:0 | no | leave it out: config.json of the model describes it
> query-pre-attn-scalar:1 query_pre_attn_scalar, scale-emb:1 scale_emb, scale-depth:1 scale_depth, dim-model-base:1 dim_model_base, q-lora-rank:1 q_lora_rank, kv-lora-rank:1 kv_lora_rank, v-head-dim:1 v_head_dim, qk-head-dim:1 qk_nope_head_dim, qk-nope-head-dim:1 qk_nope_head_dim, qk-pos-emb-head-dim:1 qk_rope_head_dim, qk-rope-head-dim:1 qk_rope_head_dim, partial-rotary-factor:1 partial_rotary_factor | field | the number of this name
> multi-latent-attention:0, multi-head-latent-attention:0 | config kv_lora_rank | latent attention
> embed-layernorm:0 | config architectures | a norm behind the embedding
> use-glm-rope:0 | config architectures | rotary positions of pairs of neighbouring channels, of half of a head
> input-embeds-norm:0 | config architectures | embeddings are multiplied by the root of the width
> add-rmsnorm-offset:0 | config architectures | a norm multiplies by 1 + its weight
> interleave-sliding-window:1 | config sliding_window | layers with this window and without one in turn
> square-alibi-mask:0, fill-neg-inf:0 | config architectures | a position bias of attention (ALiBi) in place of rotary positions
> input-layernorm-in-fp32:0, init-norm-weight-in-fp32:0, rmsnorm-weight-in-fp32:0 | so | norms are computed, and their weights kept, in f32
> skip-bias-add:0 | none | a bias is added by another kernel
> no-post-layer-norm:0 | so | a reward model has the final norm of its family: config.json describes it
> data-parallel-random-init:0, init-method-xavier-uniform:0 | no | initial weights are normal, the same on every replica
> distributed-timeout-minutes:1 | key parallel.timeout | in seconds
> attention-softmax-in-fp32:0, accumulate-allreduce-grads-in-fp32:0, fp16-lm-cross-entropy:0 | so | softmax, sums of gradients and losses are in f32 or more
> apply-query-key-layer-scaling:0 | none | the factor is taken back in the softmax: it keeps f16 from overflowing
> fp32-residual-connection:0 | so | residual connections are in f32
> recompute-activation-function-num-layers:1, recompute-norm-num-layers:1 | none | recomputed in all layers: memory, not results
> swap-attention:0, swap-modules:1 | none | activations stay in memory, or with train.offload on a disk: memory, not results
> lora-fusion:0 | none | adapter and base are products of their own: order of sums, not results
> swap-optimizer:0, swap-optimizer-times:1 | none | the state of the optimizer stays in memory, where parallel.zero=1 divides it
> delay-param-gather:0, ddp-bucket-size:1, no-delay-grad-reduce:0, use-cp-send-recv-overlap:0, use-fused-ring-attention-update:0 | none | when ranks exchange parts of the same sums
> kv-head-repeat-before-uly-alltoall:0 | none | keys and values are repeated where heads need them
> use-deter-comp:0, npu-deterministic:0, deterministic-mode:0 | so | the same run always gives the same bits
> loss-chunk-size:1, loss-compute-mode:1 | so | the output layer and the loss are computed in slices, without all logits
> reward-model:1 | program reward | of --stage trl_ppo: the rule {rule: model}, and critic.model
> rollout-batch-size:1 | none | prompts of a pass of generation: time, not results; a rollout has --global-batch-size of them
> qlora:0 | no | an adapter over a quantized base (QLoRA) is not supported
> lu-lora-final-layer-index:1, lu-lora-lr:1, lu-lora-lr-ratio:1 | no | LU-LoRA is not supported
> tp-2d:0, tp-x:1, tp-y:1 | no | 2-D tensor parallelism is not supported
> schedules-method:1 | no | the schedule dualpipev of pipelines is not supported
> use-torch-fsdp2:0, fsdp2-config-path:1 | no | full sharding (FSDP2) is not supported
> mtp-num-layers:1, num-nextn-predict-layers:1, mtp-loss-scaling-factor:1, mtp-after-norm:0, mtp-mem-efficient-logits:0, mtp-spec:2 | no | multi-token prediction is not supported
> mla-fa-without-pad:0, mla-mm-split:0, enable-mla-absorb:0 | none | another order of the products of latent attention
> enable-mla-scale-q-lora:0, enable-mla-scale-kv-lora:0 | no | scaled latent vectors (LongCat) are not supported
> enable-dsa-indexer:0, indexer-loss-coeff:1, index-head-dim:1, index-n-heads:1, index-topk:1, index-topk-freq:1, index-skip-topk-offset:1, index-share-for-mtp-iteration:0, use-fused-lightning-indexer:0, use-fused-lightning-indexer-loss:0, no-use-sparse-c8-indexer:0, use-sparse-flash-attn:0 | no | sparse attention with an indexer is not supported
> kv-compress:0, compress-ratios:+, compress-rope-theta:1, original-seq-len:1, rope-factor:1, sliding-window-size:1, apply-rope-no-in-complex:0, o-groups:1, o-lora-rank:1, swiglu-limit:1, max-batch-size:1 | no | compressed attention (DeepSeek-V4) is not supported
> enable-mhc:0, hc-mult:1, use-fused-mhc:0, use-triton-mhc:0 | no | manifold-constrained hyper-connections are not supported
> share-kvstates:0, cla-share-factor:1 | no | keys and values that layers share (Hunyuan-Large) are not supported
> full-attention-interval:1, linear-key-head-dim:1, linear-num-key-heads:1, linear-num-value-heads:1, linear-value-head-dim:1, no-enable-linear-qkv:0, use-triton-gdn:0 | no | linear attention (gated delta rule) is not supported
> mamba-chunk-size:1, mamba-d-conv:1, mamba-d-state:1, mamba-expand:1, mamba-head-dim:1, mamba-num-groups:1, mamba-state-dim:1, hybrid-attention-ratio:1, hybrid-mlp-ratio:1 | no | state spaces (Mamba) are not supported
> embedding-multiplier-scale:1, output-multiplier-scale:1 | no | models of Grok are not supported
> fc-type:1 | no | models of PLM are not supported
> nproc-per-node:1, nnodes:1, node-rank:1, master-addr:1, master-port:1 | so | words of torchrun, before the name of a script
> worker-num:1, local-worker-num:1, join:1, log-dir:1, cluster-time-out:1, bind-core:1 | no | msrun, which starts the processes of MindSpore, is not offered
> local-rank:1 | so | MPI numbers the ranks of a host

# Options for its hardware
> tp-comm-overlap:0 | none | products and collectives are separate kernels
> use-flash-attn:0, cross-entropy-loss-fusion:0, no-masked-softmax-fusion:0, no-bias-gelu-fusion:0, no-bias-swiglu-fusion:0, no-bias-dropout-fusion:0, no-rope-fusion:0, no-gradient-accumulation-fusion:0, manual-gc:0, use-mcore-models:0 | so | one kernel for each operation, one implementation of each layer
> output-layer-slice-num:1 | so | the output layer is computed in slices
> use-cpu-initialization:0 | so | initial weights depend on seed and name, not on the device
> empty-unused-memory-level:1 | only 0 | no cache of freed memory
> manual-gc-interval:1 | so | there is no garbage collector
> use-legacy-models:0 | no | the layers are those of Megatron core
> test-mode:0, skip-train:0 | no | a run trains; troupe logprobs evaluates a model
> transformer-impl:1 | only local transformer_engine | one implementation of each layer
> jit-compile:0 | none | kernels are compiled before a run
> gemm-gradient-accumulation-fusion:0 | so | products add to the gradient of a weight
> use-ascend-coc:0, coc-fused-kernel:0, coc-parallel-num:1, coc-mode:1, use-ascend-mc2:0, use-mc2:0 | none | products and collectives are separate kernels: time, not results
> shape-order:1, sparse-mode:1 | none | one kernel of attention, which applies the window of the model
> disable-gloo-group:0 | none | one group of ranks exchanges all messages
> ai-framework:1 | only pytorch | the backend MindSpore is not offered

# Inference
> task:* | program do_sample num_beams | greedy, do_sample, beam_search, beam_search_with_sampling, chat; none: all in turn
> top-p:1, top-k:1, temperature:1 | program do_sample | of the tasks that sample: 0.95, 50 and 0.7
> max-new-tokens:1 | program max_new_tokens | 128
> num-beams:1 | program num_beams | of the beam searches: 2
> max-length:1 | so | --max-new-tokens decides, as in MindSpeed-LLM
> hf-chat-template:0 | program chat_template | of the task chat: the template of the model's folder
> add-eos-token:+ | program stop_token_ids | tokens that end an answer as well
> history-turns:1 | program history_turns | earlier turns of the task chat: 3
> use-kv-cache:0, stream:0 | so | keys and values are cached, and text is printed as it is found

# Preprocessing
> input:+ preprocess --input, output-prefix:1 preprocess --output-prefix, json-keys:+ preprocess --json-keys, map-keys:1 preprocess --map-keys, n-subs:1 preprocess --n-subs, cache-dir:1 preprocess --cache-dir, max-samples:1 preprocess --max-samples, merge-group-keys:+ preprocess --merge-group-keys, append-eod:0 preprocess --append-eod | program | an option of preprocess
> streaming:0, interleave-probs:1, mix-strategy:1, dataset-dir:1, script-data-dir:1, hf-datasets-params:1 | no | several data sets in one call of preprocess: call it for each, and mix them by --data-path
> split-sentences:0, keep-newlines:0 | no | sentences of a document as sequences of their own are not supported

# Conversion
> load-dir:1 convert --load-dir, save-dir:1 convert --save-dir, load-model-type:1 convert --load-model-type, save-model-type:1 convert --save-model-type, model-type:1 convert --model-type, params-dtype:1 convert --params-dtype, target-tensor-parallel-size:1 convert --target-tensor-parallel-size, target-pipeline-parallel-size:1 convert --target-pipeline-parallel-size, orm:0 convert --orm, save-lora-to-hf:0 convert --save-lora-to-hf | program | an option of convert
> target-expert-parallel-size:1, target-expert-model-parallel-size:1 | only 1 | mixtures of experts and their division over ranks are not supported: a dense model has no experts
> w-pack:*, no-checking:0, max-queue-size:1, save-layer-by-layer:0 | so | config.json defines which tensors are joined; all are checked, and written one after the other
> qlora-nf4:0 | no | checkpoints of QLoRA (NF4) are not written
> source-tensor-parallel-size:1, source-pipeline-parallel-size:1, source-expert-parallel-size:1 | so | the division of --load-dir is read from its files
> target-tp-size:1, target-pp-size:1, d-model:1, mamba2-head-dim:1, mamba2-n-groups:1 | no | state spaces (Mamba) are not supported
> cvt-type:1, hf-dir:1, mg-dir:1, model-config-file:1, model-index-file:1, model-name:1 | no | convert_param.py divides for 2-D tensor parallelism, which is not supported
> input-fp8-hf-path:1, output-hf-path:1, quant-type:1 | no | weights in FP8 are not converted

# Evaluation
> task-data-path:+, evaluation-batch-size:1, alternative-prompt:0, broadcast:0, instruction-template:1, no-chat-template:0, max-tokens-to-oom:1 | no | evaluation.py is not offered

# Other programs
> model.model-name-or-path:1, model.enable-fsdp-low-precision-all-gather:*, model.quant-converters:*, model.quant-recipe-name:1, parallel.efsdp-shard-placement-fn:1, parallel.ep-dispatcher:1, parallel.ep-fsdp-size:1, parallel.ep-size:1, parallel.fsdp-size:1, inference.infer-backend:1, inference.max-new-tokens:1 | no | train_fsdp2.py and inference_fsdp2.py, programs of full sharding, are not offered
)";

}  // namespace troupe::launch::tools::tables
