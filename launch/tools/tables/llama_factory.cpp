#include "launch/tools/tables/tool_texts.h"

namespace troupe::launch::tools::tables {

constinit const std::string_view llama_factory_text = R"(
# Method and model
stage | algorithm | pt=algorithm:pretrain,init.weights:file sft=sft rm=orm ppo=ppo dpo=dpo kto=kto | | sft
finetuning_type | lora.rank | oft=!! freeze=!! @peft | lora: lora_rank (8 by default) is lora.rank; full: 0 | lora
model_name_or_path | model | @model | a directory; download models with hf download
adapter_name_or_path | lora.adapter | @model |
adapter_folder | lora.adapter | | the folder itself
create_new_adapter | - lora.create_new_adapter | troupe merge the old adapter, then train a new one over the merged model
trust_remote_code, model_revision, use_fast_tokenizer, hf_hub_token, ms_hub_token, om_hub_token, infer_dtype, infer_backend, offload_folder, use_kv_cache, use_cache, print_param_status, compute_dtype, model_max_length, block_diag_attn, use_v1_kernels | = | models are directories, and no code is read from them
resize_vocab, add_tokens, add_special_tokens, new_special_tokens_config, init_special_tokens, split_special_tokens | - model_overrides.vocab_size_of_new_tokens | resize the vocabulary with transformers before training
rope_scaling | ~ model_overrides | set rope_scaling in the model's config.json, or override it for the run
shift_attn, mixture_of_depths, use_llama_pro, use_mca, use_megatron_bridge, use_hyper_parallel, moe_aux_loss_coef, train_from_scratch, use_kt, kt_*, fp8, fp8_backend, fp8_enable_fsdp_float8_all_gather | - model.shift_attention, moe.aux_loss, train.fp8 | not supported
disable_gradient_checkpointing | train.recompute | true=[] false= | train.recompute: [full] is the checkpointing of LLaMA-Factory
upcast_layernorm, upcast_lmhead_output, pure_bf16 | = | norms and losses are f32; train.weights=bf16 keeps weights in bf16
image_*, video_*, media_dir, freeze_vision_tower, freeze_multi_modal_projector, freeze_language_model, crop_to_patches, use_audio_in_video, audio_sampling_rate | - data.images, data.videos, data.audio | only text models are supported
freeze_trainable_layers, freeze_trainable_modules, freeze_extra_modules | - train.trainable_layers, train.freeze | train all weights or an adapter (lora.rank)
use_galore, galore_*, use_apollo, apollo_*, use_badam, badam_*, use_adam_mini, use_muon | - train.optimizer | AdamW is the only optimizer
oft_*, module_dropout, pissa_*, loraplus_* | - lora.init, lora.module_dropout, lora.plus_ratio, oft.rank | adapters are LoRA, rsLoRA or DoRA (lora.*)

# Data
dataset | data.path | @datasets | the files that dataset_info.json gives these names
dataset_dir | data.path | @dataset_dir | part of the paths in data.path
template | chat_template | @template | the model's own template is the default; a prompt type (qwen, llama3, ...) or a Jinja file selects another
cutoff_len | train.max_length | | | 2048
train_on_prompt | sft.mask_prompt | true=false false= |
mask_history | - sft.mask_history | every assistant turn is trained on
streaming | data.stream | |
buffer_size | data.shuffle_buffer | | used with data.stream
mix_strategy | data.mix | @mix_strategy | concat: data.path with several files; interleave_under, interleave_over: data.mix with a weight for each data set
interleave_probs | data.mix | @interleave_probs | the weights of its sources
disable_shuffling | data.shuffle | true=false false= |
max_samples | data.max_samples | | of each source
val_size | data.split | @split | a fraction; a number of rows: split the file and name the held-out part in eval.path
eval_on_each_dataset, eval_num_beams, compute_accuracy | = | eval.path has one loss and its metrics
ignore_pad_token_for_loss | = | nothing is padded
tokenized_path | = | there is no preprocessing step
default_system | data.system | | the system message of rows without one
tool_format, enable_thinking, preserve_thinking | - chat_template_kwargs | write a template file and name it in chat_template

# Preferences, rewards and reinforcement
pref_beta | dpo.beta, simpo.beta, orpo.beta, kto.beta, cpo.beta | |
pref_loss | dpo.loss | sigmoid=sigmoid hinge=hinge ipo=ipo kto_pair=kto_pair orpo=algorithm:orpo simpo=algorithm:simpo | orpo and simpo are algorithms
pref_ftx | dpo.loss_weights, simpo.nll_weight | @rpo | sft in the list dpo.loss, with this weight
pref_bco_weight | ~ dpo.loss_weights, dpo.loss | bco_pair in the list dpo.loss, with a weight in dpo.loss_weights
dpo_label_smoothing | dpo.label_smoothing | @cdpo | with dpo.loss: cdpo
ld_alpha | dpo.ld_alpha | |
kto_chosen_weight | kto.desirable_weight | |
kto_rejected_weight | kto.undesirable_weight | |
simpo_gamma | simpo.gamma | | | simpo:0.5
ref_model | dpo.reference, kto.reference, ppo.reference | @model |
ref_model_adapters, reward_model_adapters | - dpo.reference_adapter, ppo.reference_adapter, reward_adapter | merge the adapter first (troupe merge)
ref_model_quantization_bit, reward_model_quantization_bit | - train.quantization | models are not quantized in training
reward_model | reward | @reward_model | the rule {rule: model, path: DIR}
reward_model_type | reward | full= lora=! api=! | a model directory; merge an adapter first (troupe merge)
ppo_epochs | ppo.epochs | | | ppo:4
ppo_buffer_size | ppo.minibatches | |
ppo_target | ppo.kl_target | @adaptive | with ppo.kl_schedule: adaptive
ppo_whiten_rewards | ppo.whiten_rewards | |
ppo_score_norm | ~ reward | {rule: model, normalize: saved} normalizes by the reward model's own statistics
use_dft_loss | sft.loss | true=dft false= |
use_asft_loss, asft_alpha, use_eaft_loss, eaft_alpha | - sft.asft_alpha, sft.eaft_alpha | sft.loss: nll or dft

# Generation and output
max_new_tokens | rollout.max_new_tokens | | | ppo:1024
temperature | rollout.temperature | | | ppo:0.95
top_p | rollout.top_p | | | ppo:0.7
top_k | rollout.top_k | | | ppo:50
repetition_penalty | rollout.repetition_penalty | |
do_sample, num_beams, length_penalty, max_length, skip_special_tokens | = | options of troupe generate; rollouts sample
plot_loss | = | plot.svg is always written
early_stopping_steps | train.early_stopping.patience | | evaluations, with train.early_stopping.metric: eval/loss
include_effective_tokens_per_second, include_num_input_tokens_seen | = | the progress line has tokens per second
export_*, low_cpu_mem_usage | = | a checkpoint is a Hugging Face model directory; troupe merge merges an adapter
vllm_*, sglang_* | = | samples are generated inside the run
use_swanlab, swanlab_* | - tracking.swanlab | metrics.jsonl and TensorBoard events are always written, and swanlab reads them; docs/tracking.md
ray_*, num_gpus | - cluster.ray | a cluster file of troupe launch
virtual_pipeline_model_parallel_size | parallel.vpp | |
megatron_*, expert_model_parallel_size, sequence_parallel | ~ parallel.tp, parallel.dp, parallel.pp, parallel.sp | parallel.tp, parallel.dp and parallel.pp
tensor_model_parallel_size | parallel.tp | |
pipeline_model_parallel_size | parallel.pp | |
context_parallel_size | parallel.cp | |
recompute_granularity | train.recompute | full=[full] selective=[attention] |
recompute_method | train.recompute_method | uniform=uniform block=block |
recompute_num_layers | train.recompute_layers | |
use_distributed_optimizer, overlap_param_gather, overlap_grad_reduce, bias_activation_fusion, apply_rope_fusion, masked_softmax_fusion, cross_entropy_loss_fusion, moe_grouped_gemm, moe_token_dispatcher_type, use_packed_sequences, mixed_precision, extra_config, fsdp_transformer_layer_cls_to_wrap | = | there is one set of kernels
)";

}  // namespace troupe::launch::tools::tables
