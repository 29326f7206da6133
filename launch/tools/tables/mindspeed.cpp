#include "launch/tools/tables/tool_texts.h"

namespace troupe::launch::tools::tables {

constinit const std::string_view mindspeed_text = R"(
# Method, model and output
stage:1 | algorithm | sft=sft dpo=dpo simpo=simpo orm=orm prm=prm ray_ppo=ppo trl_ppo=ppo ray_grpo=grpo ray_dapo=dapo pretrain=pretrain ray_online_dpo=! |
adv_estimator | algorithm | group_norm=grpo gae=ppo |
tokenizer_name_or_path | model | @model | a Hugging Face model directory, with its weights
load, pretrained_checkpoint | model | @weights | a Hugging Face model directory; pretrain_gpt and posttrain_gpt also read checkpoints of Megatron, from which troupe convert makes one
save | output | |
model, defaults, spec, yaml_cfg, mm_model | = | config.json of the model's folder describes it
finetune, no_load_optim, no_load_rng, no_initialization, use_checkpoint_args, exit_on_missing_checkpoint, load_checkpoint_loosely, ckpt_step | resume | true= false= | never, or auto
no_save_optim, no_save_rng, no_shared_storage, use_dist_ckpt, dist_ckpt_format, auto_detect_ckpt_format, async_save, ckpt_fully_parallel_save, ckpt_assume_constant_structure | = | a checkpoint is a model directory with the training state
save_interval:1 | train.save_every | @rollout_steps | MindSpeed-RL counts rollouts | | 0
log_interval:1 | train.log_every | |
log_throughput:0 | train.log_throughput | | in the lines of Megatron
log_params_norm, log_num_zeros_in_grad, log_progress, timing_log_level, timing_log_option, log_max_throughput, log_straggler, enable_one_logger, log_timers_to_tensorboard:0, log_batch_size_to_tensorboard:0, log_validation_ppl_to_tensorboard:0, log_memory_to_tensorboard, tensorboard_*, use_tensorboard, logging_level | = | metrics.jsonl and TensorBoard events are always written
use_wandb, wandb_* | - tracking.wandb | metrics.jsonl and TensorBoard events are always written; launch/examples/track_metrics.py sends them (docs/tracking.md)
auto_settings*, exit_interval:1, exit_duration_in_mins:1, exit_signal_handler | - train.exit_interval, parallel.auto | troupe explain prints parameters and memory before a run; a signal saves and ends it

# Data
data_path:+ | pretrain:data.path, pretrain:data.mix | @blend | token files, with their weights
data_path, input, train_data_path:+ | data.path | @files | files of rows, as they are
valid_data_path:+, test_data_path | eval.path | @files |
eval_interval:1 | eval.every | |
eval_iters:1 | pretrain:pretrain.eval_batches | @eval_iters | 0: no evaluation | 100
eval_iters | = | all rows of eval.path are evaluated
split:1 | pretrain:pretrain.split | | weights of training, validation and test data
split | = | data.path is for training, eval.path is held out
handler_name:1 | data.format | GeneralPretrainHandler= AlpacaStyleInstructionHandler= SharegptStyleInstructionHandler= AlpacaStylePairwiseHandler= SharegptStylePairwiseHandler= PPOAlpacaStyleInstructionHandler= R1AlpacaStyleInstructionHandler= * | detected from the rows
json_keys, map_keys | data.map_keys | @map_keys | or data.columns
dataset_additional_keys:+, merge_group_keys, dataset_impl, output_prefix, workers, n_subs, cache_dir, overwrite_cache, num_workers, data_cache_path:1, no_mmap_bin_files:0, dataloader_type, num_dataset_builder_threads, script_data_dir, hf_datasets_params, datasets | = | rows are read directly, every column is kept
interleave_probs | ~ data.mix | the weights of its sources
mix_strategy | data.mix | concat= interleave_under=! interleave_over=! |
streaming | data.stream | |
max_samples | data.max_samples | |
sample_rate, mock_data, dataset_dir | - data.sample_rate, data.mock | name shorter files in data.path
seq_length:1 | train.max_length | |
max_position_embeddings, max_model_len | = | the model's own limit; train.max_length lowers it
reset_position_ids:0, reset_attention_mask:0 | pretrain:pretrain.reset_documents | | both together
eod_mask_loss:0 | pretrain:pretrain.mask_end_of_document | |
pad_to_multiple_of, variable_seq_lengths, no_pad_to_seq_lengths, padded_samples, pack, neat_pack, reset_position_ids, reset_attention_mask, eod_mask_loss, use_remove_padding, no_create_attention_mask_in_dataloader, is_instruction_dataset, is_pairwise_dataset, attention_mask_type | = | sequences are packed without padding and never attend to each other
append_eod | = | the end token is appended to plain text
no_shuffle:0 | data.shuffle | true=false false= |
full_shuffle_instruction_dataset:0 | data.shuffle | |
tokenizer_type, tokenizer_model, tokenizer_kwargs, tokenizer_not_use_fast, tokenizer_padding_side, vocab_file, merge_file, vocab_extra_ids, trust_remote_code | = | the tokenizer of the model's folder
prompt_type:1, prompt_type_path:1 | chat_template | * | the name of a prompt type, or a template file
enable_thinking | - chat_template_kwargs | a prompt type or a template file in chat_template
placeholder_token:1 | prm.placeholder | |
reward_tokens:+ | prm.reward_tokens | @list |

# Training
train_iters:1, train_samples | train.steps | @iterations | optimizer steps; MindSpeed-RL counts rollouts
global_batch_size:1 | train.batch_size | @batch | rows of an optimizer step; MindSpeed-RL: prompts of a rollout
rampup_batch_size:3 | pretrain:train.batch_rampup.start | @rampup | START INCREMENT SAMPLES
rampup_batch_size | - train.batch_rampup.start_of_rows | only pretraining raises the batch (train.batch_rampup)
calculate_per_token_loss:0 | sft:train.loss_average, pretrain:train.loss_average | true=tokens false=micro_batches | without it, the mean of the means of micro-batches | sft,pretrain:false
calculate_per_token_loss | = | the method has its own average
micro_batch_size:1 | sft:train.micro_batch_rows, pretrain:train.micro_batch_rows | | of train.loss_average: micro_batches
micro_batch_size, ref_forward_micro_batch_size, actor_forward_micro_batch_size, use_dynamic_bsz, *max_packing_token_size, *dynamic_max_batch_size, *_dispatch_size | = | train.micro_batch_tokens: tokens per pass, which never change the result
lr:1 | train.learning_rate | |
min_lr:1 | train.min_lr_ratio | @min_lr | divided by lr
lr_decay_style:1 | train.schedule | linear=linear cosine=cosine constant=constant inverse-square-root=inverse_sqrt WSD=wsd | | linear
lr_warmup_iters:1 | train.warmup_steps | |
lr_warmup_fraction:1 | train.warmup_steps | @warmup_fraction | of lr_decay_iters, not rounded
lr_wsd_decay_iters:1 | train.decay_steps | | with train.schedule: wsd
lr_wsd_decay_style:1 | train.decay_style | cosine=cosine linear=linear exponential=exponential minus_sqrt=minus_sqrt | | exponential
lr_decay_iters:1 | train.schedule_steps | |
lr_warmup_init:1 | train.warmup_start_ratio | @min_lr | divided by lr | 0
lr_decay_samples, lr_warmup_samples, lr_wsd_decay_samples | - train.schedule_samples | the lengths of schedules are steps
override_opt_param_scheduler, use_checkpoint_opt_param_scheduler | = | a resumed run takes the schedule of its configuration
decoupled_lr:1, decoupled_min_lr:1, start_weight_decay:1, end_weight_decay:1, weight_decay_incr_style | - train.decoupled_learning_rate, train.weight_decay_schedule | one learning rate and one weight decay
adam_beta1:1 | train.betas | @beta1 | the first of the two
adam_beta2:1 | train.betas | @beta2 | the second of the two
adam_eps:1 | train.eps | |
weight_decay:1 | train.weight_decay | | | 0.01
clip_grad:1 | train.max_grad_norm | |
optimizer | train.betas | adam= sgd=! | AdamW is the only optimizer
bf16:0 | train.dtype | true=bf16 false= |
fp16 | train.dtype | true=f16 false= | with a dynamic loss scale (train.loss_scale)
loss_scale, initial_loss_scale, min_loss_scale, loss_scale_window, hysteresis, fp16_lm_cross_entropy | = | train.loss_scale with train.dtype: f16; losses are computed in f64
fp32_residual_connection, apply_query_key_layer_scaling, attention_softmax_in_fp32, accumulate_allreduce_grads_in_fp32 | = | sums, softmax and norms are f32
seed:1 | train.seed | | | 1234
recompute_activations:0 | train.recompute | @recompute |
recompute_granularity:1 | train.recompute | @recompute |
recompute_activation_function:0 | train.recompute | @recompute |
recompute_norm:0 | train.recompute | @recompute |
recompute_method:1 | train.recompute_method | uniform=uniform block=block |
recompute_num_layers:1 | train.recompute_layers | |
recompute_in_advance:0, recompute_in_bubble:0 | train.recompute_in_advance | true=true false= |
swap_attention, distribute_saved_activations | = | train.micro_batch_tokens and train.recompute bound the memory of a step; train.offload writes activations to a disk
lora_r:1 | lora.rank | |
lora_alpha:1 | lora.alpha | |
lora_target_modules:+ | lora.targets | linear_qkv=[q_proj,k_proj,v_proj] linear_proj=[o_proj] linear_fc1=[gate_proj,up_proj] linear_fc2=[down_proj] @megatron_list | the model's names: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj
lora_load:1 | lora.adapter | @model |
lora_fusion, lora_ckpt_filter, lora_register_forward_hook | = | only the adapter is saved
qlora, share_backbone | - train.quantization, lora.share_backbone | train an adapter over the unquantized model
tensor_model_parallel_size:1 | parallel.tp | |
pipeline_model_parallel_size:1 | parallel.pp | |
num_layer_list:+ | parallel.layers | @list |
use_tp_pp_dp_mapping:0 | parallel.order | true=tp-cp-pp-dp false= |
noop_layers:+ | parallel.noop_layers | @list | places in the list of layers without one
context_parallel_size:1 | parallel.cp | |
context_parallel_algo:1 | parallel.cp_algorithm | megatron_cp_algo=ring ulysses_cp_algo=ulysses hybrid_cp_algo=hybrid |
ulysses_degree_in_cp:1 | parallel.ulysses_degree | |
cp_window_size:1 | parallel.cp_window | | of rings
num_layers_per_virtual_pipeline_stage:1 | parallel.vpp | @virtual | num_layers / pipeline_model_parallel_size / this
cp_*, expert_model_parallel_size, expert_tensor_parallel_size, tp_split_expert, standalone_embedding_stage:0 | - parallel.ep, parallel.expert_tp | parallel.tp, parallel.dp, parallel.pp and parallel.cp are the only parallelism; parallel.layers lists the layers of each stage
sequence_parallel:0 | parallel.sp | true=true false= | without effect where parallel.tp is 1
overlap_grad_reduce:0 | parallel.overlap | true=gradients false= |
overlap_param_gather:0 | parallel.overlap | true=all false= |
use_distributed_optimizer:0 | parallel.zero | true=1 false= | the optimizer state is divided over replicas
reuse_fp32_param:0 | train.weights | true=split false= | of bf16 only
o2_optimizer:0 | train.weights | true=bf16 false= | of bf16 only
o2_gradient:0 | train.gradients | true=bf16 false= | of bf16 only
optimizer_selection:1 | train.ema_decay | @ema | fused_adamw, fused_torch_adamw, or fused_ema_adamw with ema_decay, by default 0.9999
ema_decay:1 | train.ema_decay | @ema | with optimizer_selection fused_ema_adamw
swap_optimizer, delay_param_gather, ddp_bucket_size, ddp_average_in_collective:0, no_delay_grad_reduce, use_cp_send_recv_overlap | - parallel.bucket_mib, train.offload_optimizer | parallel.zero: 1 divides the optimizer state over replicas, parallel.overlap overlaps their communication
num_experts:1 | -! moe, parallel.ep | mixtures of experts are not supported; choose a dense model
moe_*, n_shared_experts, shared_expert_gate, router_gating_in_fp32, topk_group, first_k_dense_replace, seq_aux, routed_scaling_factor, norm_topk_prob, num_nextn_predict_layers, enable_expert_parallel, eplb_token_collects, expert_map_path | - moe, parallel.ep | mixtures of experts are not supported
num_layers, square_alibi_mask, fill_neg_inf, qk_head_dim, v_head_dim, long_factor, short_factor, long_mscale, short_mscale, longrope_freqs_type, partial_rotary_factor, interleave_sliding_window, no_position_embedding, no_enable_linear_qkv, full_attention_interval, mamba_*, linear_key_head_dim, linear_num_*, linear_value_head_dim, model_type_hf, hidden_size, ffn_hidden_size, num_attention_heads, kv_channels, num_query_groups, group_query_attention, position_embedding_type, use_rotary_position_embeddings, rotary_*, rope_scaling_*, low_freq_factor, high_freq_factor, original_max_position_embeddings, beta_fast, beta_slow, normalization, norm_epsilon, swiglu, geglu, gelu_tanh, squared_relu, openai_gelu, add_qkv_bias, add_dense_bias, disable_bias_linear, untie_embeddings_and_output_weights, make_vocab_size_divisible_by, padded_vocab_size, vocab_size, qk_layernorm, sliding_window, input_embeds_norm, output_logit_softcapping, attn_logit_softcapping, query_pre_attn_scalar, post_norm, scale_emb, scale_depth, dim_model_base, multi_head_latent_attention, multi_latent_attention, qk_*_head_dim, q_lora_rank, kv_lora_rank, v_head_dim, apply_layernorm_1p, add_rmsnorm_offset, embed_layernorm, use_glm_rope | = | config.json of the model's folder says it
init_method_std:1 | pretrain:init.std | | | 0.02
attention_dropout | train.attention_dropout | | 0 where it is not given
hidden_dropout | train.hidden_dropout | | 0 where it is not given
init_method_std, init_method_xavier_uniform, data_parallel_random_init | = | models are trained from their weights
distributed_backend:1, distributed_timeout_minutes, nproc_per_node, nnodes, node_rank, master_addr, master_port, local_rank | = | mpirun or troupe launch start the processes; parallel.timeout bounds the wait for other ranks
use_deter_comp, deterministic_mode, npu_deterministic, guarantee_order | = | the same run always gives the same bits
enable_high_availability, enable_elastic_training | = | a run resumes bit-exactly from its last checkpoint
profile:0 | profile.enabled | |
profile_step_start:1 | profile.step_start | |
profile_step_end:1 | profile.step_end | |
profile_ranks:+ | profile.ranks | @list |
profile_level:1 | profile.level | level_none= * |
profile_with_cpu:0 | profile.with_cpu | |
profile_with_stack:0 | profile.with_stack | |
profile_with_memory:0 | profile.with_memory | |
profile_record_shapes:0 | profile.record_shapes | |
profile_save_path:1 | profile.save_path | |
op_cal_tflops | profile.enabled | | GFLOP/s of each operator

# Preferences and rewards
dpo_beta:1 | dpo.beta | |
dpo_loss_type:1 | dpo.loss | sigmoid=[sigmoid] hinge=[hinge] ipo=[ipo] kto_pair=[kto_pair] |
dpo_label_smoothing:1 | dpo.label_smoothing | @cdpo | with dpo.loss: cdpo
pref_ftx:1 | dpo.loss_weights, simpo.nll_weight | @rpo | sft in the list dpo.loss, with dpo.nll_mean: answer
ref_model:1 | dpo.reference | @model |
refer_model_iter | = | the reference is scored in passes of train.micro_batch_tokens
simpo_beta:1 | simpo.beta | |
gamma_beta_ratio:1 | simpo.gamma_beta_ratio | |
simpo_loss_type:1 | simpo.loss | sigmoid=sigmoid hinge=hinge ipo=ipo |
simpo_label_smoothing:1 | simpo.label_smoothing | |

# Reinforcement learning
n_samples_per_prompt | grpo.group_size, ppo.samples | |
mini_batch_size, ppo_mini_batch_size | grpo.minibatches, ppo.minibatches | @mini_batch | prompts of an optimizer step: global_batch_size / mini_batch_size
epochs, ppo_epochs | grpo.epochs, ppo.epochs | |
shuffle_mini_batch, shuffle_minibatch | = | the minibatches of PPO are shuffled for every pass
clip_ratio | grpo.clip_low, grpo.clip_high, ppo.clip_low, ppo.clip_high | @both | of both sides
clip_higher_enable | grpo.clip_high | true= false= | clip_ratio_low and clip_ratio_high are used
clip_ratio_low | grpo.clip_low, ppo.clip_low | | with clip_higher_enable
clip_ratio_high | grpo.clip_high, ppo.clip_high | | with clip_higher_enable
token_level_loss | grpo.aggregation, ppo.aggregation | true=bnpo false=grpo |
kl_penalty | grpo.kl, ppo.kl | low_var_kl=k3 kl=k1 abs=abs mse=k2 |
init_kl_coef, kl_coef | grpo.beta, ppo.kl_coef | |
kl_ctrl_type | ppo.kl_schedule | fixed=fixed adaptive=adaptive |
kl_ctrl_type | grpo.beta | fixed= adaptive=! | the coefficient is fixed
kl_target | ppo.kl_target | |
kl_horizon | ppo.kl_horizon | |
use_kl_in_reward | ppo.kl_place | true=reward false= |
entropy_coeff | grpo.entropy_coef, ppo.entropy_coef | |
gamma | ppo.gamma, reinforce_pp:grpo.gamma | |
lam | ppo.lambda | |
advantage_whiten | ppo.whiten_advantages | |
cliprange_value | critic.value_clip | |
critic_config.lr | critic.learning_rate | |
critic_config.lr_decay_style | critic.schedule | linear=linear cosine=cosine constant=constant |
critic_config.weight_decay | critic.weight_decay | |
critic_config.clip_grad | critic.max_grad_norm | |
critic_config.load | critic.model | @model |
critic_config.*, reference_config.*, ref_config.* | = | the other roles have the policy's settings
reward_config.load | reward | @reward_model | the rule {rule: model, path: DIR}
reward_config.* | = | reward models are scored in passes of train.micro_batch_tokens
missing_eos_penalty | ppo.missing_eos_penalty | |
filter_groups_enable | grpo.dynamic_sampling | |
filter_groups_max_batches | grpo.max_refills | -1=0 * |
filter_groups_metric | grpo.dynamic_metric | acc= * | the label of a reward rule; empty: the total reward
filter_groups_train_batch_size | = | train.batch_size x grpo.minibatches prompts are kept
overlong_buffer_enable | grpo.overlong_buffer | true= false= | grpo.overlong_buffer above 0
overlong_buffer | grpo.overlong_buffer | |
overlong_buffer_penalty_factor | grpo.overlong_factor | |
rollout_max_tokens | = | rollout.max_new_tokens
verifier_function | reward | @rewards | the list of rules
verifier_weight | reward | @reward_weights | the weight of each rule: {rule: boxed, weight: 0.5}
verifier_timeout, verifier_parallel | ~ reward | timeout and workers of a command rule (docs/rewards.md)
rule_reward | = | reward has rules or models
max_prompt_length | train.max_length | @prompt_length | plus rollout.max_new_tokens
max_tokens | rollout.max_new_tokens | | | ppo,grpo:128
temperature | rollout.temperature | | | ppo,grpo:0.2
top_p | rollout.top_p | |
top_k | rollout.top_k | -1=0 * | 0 is all tokens | ppo,grpo:50
min_p | rollout.min_p | |
max_num_seqs | rollout.max_sequences | |
infer_* | ~ parallel.rollout.tp, parallel.rollout.pp | parallel.rollout.tp and parallel.rollout.pp, or parallel of the role rollout in a cluster file
logprobs, detokenize, dtype, gpu_memory_utilization, max_num_batched_tokens, offload_train_*, enable_prefix_caching, num_scheduler_steps, enforce_eager, torchair_graph, ascend_scheduler_config_enabled, data_parallel_size, limit_mm_image_per_prompt | = | there is one set of weights and no second engine; rollout.cache_tokens bounds the KV cache
use_integrated_worker, integrated_mode_config, *_resource, num_npus, blocking, num_cpus_*, runtime_env_path, zmq_communication, use_dp_batch_balance, num_samples_per_step, resource_pool* | - cluster.ray | a cluster file of troupe launch (docs/operations.md)
partial_rollout_max_split, require_max_age_all_finished, async_engine | ~ async.mode, async.partial, async.eta | samples beside training, at most async.eta updates old; async.partial continues unfinished ones (docs/async.md)
multi_turn_enable, tool_*, max_tool_*, max_parallel_calls, max_total_response_length | ~ rollout.source | service: the program that calls tools takes prompts and returns samples (docs/agents.md)
is_multimodal, reuse_image_embeds, colocate_actor_and_vit | - data.images | only text models are supported
msprobe_config.*, mstx, profile_export_type, profile_data_simplification, profile_analysis, profile_with_npu, profile_with_module | = | specific to Ascend's tools; a trace and a table are always written

# Options for its hardware
hccl_buffersize, hccl_group_buffer*, hccl_ep_group_buffer_adaptive_factor, hccl_slice_size, disable_gloo_group | = | messages are in host memory, and rank 0 writes checkpoints
use_mc2, use_ascend_mc2, use_ascend_coc, coc_*, moe_bmm_mc2, tp_comm_overlap | = | products and collectives are separate kernels
use_flash_attn, use_fusion_attn_v2, shape_order, sparse_mode, pre_tockens, next_tockens | = | one tiled attention kernel applies the model's window
ckpt_format, enable_hf2mg_convert, ai_framework, transformer_impl, jit_compile, output_layer_slice_num, mla_fa_without_pad, mla_mm_split, mtp_mem_efficient_logits, kv_head_repeat_before_uly_alltoall, rmsnorm_weight_in_fp32, use_triton_gdn, use_fused_*, use_mcore_models, use_legacy_models, no_*_fusion, *_fusion, gemm_gradient_accumulation_fusion, optimization_level, use_cpu_initialization, empty_unused_memory_level, manual_gc*, test_mode, skip_train | = | fused kernels are always used
enable_hbmfault_repair, md5_validate, check_weight_hash_across_dp_replicas_interval, no_check_for_nan_in_loss_and_grad | = | weight transfers carry checksums, and a gradient that is not finite ends the run
)";

}  // namespace troupe::launch::tools::tables
