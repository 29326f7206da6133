#include "launch/tools/tables/tool_texts.h"

namespace troupe::launch::tools::tables {

constinit const std::string_view openrlhf_text = R"(
# Model and output
pretrain, actor.model_name_or_path, model.model_name_or_path | model | @model | a directory; download models with hf download
save_path, ckpt.output_dir | output | |
ckpt_path, ckpt.path | = | checkpoints are in output
load_checkpoint, ckpt.load_enable | resume | true= | auto is the default
save_steps, ckpt.save_steps | train.save_every | -1=0 * | | 0
max_ckpt_num, ckpt.max_num | train.keep_last | 1=2 * | at least 2
max_ckpt_mem, ckpt.max_mem | - train.keep_bytes | train.keep_last bounds the number of checkpoints
save_hf_ckpt, ckpt.save_hf, disable_ds_ckpt, ckpt.disable_ds, use_ds_universal_ckpt, ds.use_universal_ckpt | = | a checkpoint is a Hugging Face model directory
save_value_network, critic.save_value_network | = | the critic is saved in OUTPUT/critic
ckpt.best_metric_key | train.keep_best | @best | a metric of the evaluation: eval/reward
logging_steps, logger.logging_steps | train.log_every | |
use_wandb, wandb_*, wandb, logger.wandb.* | - tracking.wandb | metrics.jsonl and TensorBoard events are always written; launch/examples/track_metrics.py sends them (docs/tracking.md)
use_tensorboard, logger.tensorboard_dir | = | TensorBoard events are always written
use_ms, perf | = | models and data are local files

# Training
train_batch_size, train.batch_size | train.batch_size | @batch | rows or pairs; in reinforcement learning samples, so divided by n_samples_per_prompt | 128
micro_train_batch_size, train.micro_batch_size, train.max_tokens_per_gpu, train_max_tokens_per_gpu | = | train.micro_batch_tokens: tokens per pass, which never change the result
use_dynamic_batch, train.dynamic_batch_enable | = | batches are split by tokens
max_epochs, train.max_epochs | ppo.epochs, grpo.epochs, train.epochs | @epochs | in reinforcement learning the passes over each batch of samples | sft:2
num_episodes, train.num_episodes | train.epochs | @epochs |
max_steps, train.max_steps | train.steps | |
max_len, data.max_len | train.max_length | | | sft:2048 dpo,kto,orm:512
learning_rate, actor_learning_rate, adam.lr, actor.adam.lr | train.learning_rate | | | sft:5e-6 orm,kto:9e-6 dpo:1e-5
critic_learning_rate, critic.adam.lr | critic.learning_rate | |
lr_scheduler, actor.lr_scheduler | train.schedule | cosine_with_min_lr=cosine cosine=cosine linear=linear constant=constant constant_with_warmup=constant | | cosine
lr_warmup_ratio, actor.lr_warmup_ratio | train.warmup_ratio | | | 0.03
min_lr_ratio, actor.min_lr_ratio | train.min_lr_ratio | | | 0.1
adam_betas, adam.betas, actor.adam.betas | train.betas | @list | | 0.9 0.95
adam.eps, actor.adam.eps | train.eps | |
l2, adam.weight_decay, actor.adam.weight_decay | train.weight_decay | |
max_norm, actor.max_norm | train.max_grad_norm | |
optim, actor.optim | train.betas | adam= adamw= | AdamW is the only optimizer
muon.* | - train.optimizer | AdamW is the only optimizer
bf16 | train.dtype | true=bf16 false= | master weights stay f32
param_dtype, ds.param_dtype | train.dtype | bf16=bf16 fp16=f16 fp32=f32 | | bf16
seed, train.seed | train.seed | | | 42
full_determinism, train.full_determinism_enable | = | the same run always gives the same bits
lora_rank, ds.lora.rank | lora.rank | |
lora_alpha, ds.lora.alpha | lora.alpha | |
lora_dropout, ds.lora.dropout | lora.dropout | |
target_modules, ds.lora.target_modules | lora.targets | @list | a list: [q_proj, v_proj]
load_in_4bit, ds.load_in_4bit | - train.quantization | train the adapter over the unquantized model
gradient_checkpointing, model.gradient_checkpointing_enable, actor.gradient_checkpointing_enable | train.recompute | true=[full] | same results with less memory
gradient_checkpointing_use_reentrant, model.gradient_checkpointing_reentrant, actor.gradient_checkpointing_reentrant | = | train.recompute has no further settings
packing_samples, ds.packing_samples | = | nothing is padded
attn_implementation, ds.attn_implementation, flash_attn, use_liger_kernel, ds.use_liger_kernel, ds.experts_implementation, deepcompile, ds.deepcompile | = | there is one set of kernels
zero_stage, ds.zero_stage, adam_offload, ds.adam_offload, zpg, ds.zpg, overlap_comm, ds.overlap_comm, grad_accum_dtype, ds.grad_accum_dtype, ref_offload, ref.offload, ref_reward_offload, reward.offload | ~ parallel.zero, parallel.overlap | parallel.dp and parallel.tp; parallel.zero: 1 divides the optimizer state, and nothing is offloaded
ds_tensor_parallel_size, ds.tensor_parallel_size | parallel.tp | |
ring_attn_size, ds.ring_attn_size | parallel.cp | |
ring_head_stride, ds.ring_attn_head_stride | = | the ring is over all heads
local_rank | = | mpirun or troupe launch start the processes
aux_loss_coef, model.aux_loss_coef, actor.aux_loss_coef | train.experts.coefficients | @list | of mixtures of experts
enable_ema, train.enable_ema, ema_beta, train.ema_beta | ~ train.ema_decay | set train.ema_decay to the value of ema_beta: checkpoints then have the average in ema/
disable_fast_tokenizer, data.disable_fast_tokenizer | = | tokenizer.json and SentencePiece models are read directly

# Data
dataset, data.dataset, prompt_data, data.prompt_dataset | data.path | @files | files; download data sets with hf download
dataset_probs, data.dataset_probs, prompt_data_probs, data.prompt_probs | ~ data.mix | the weights of its sources
dataset_split, data.dataset_split, prompt_split, data.prompt_split, eval_split, eval.split | ~ data.path, eval.path | name the files of the split
max_samples, data.max_samples | data.max_samples | | of each source
input_key, data.input_key, prompt_key, data.prompt_key | prm:data.columns.input, data.columns.prompt | |
output_key, data.output_key | data.columns.completion | |
label_key, data.label_key | kto:data.columns.label, prm:data.columns.value, data.columns.answer | |
chosen_key, data.chosen_key | data.columns.chosen | chosen= * |
rejected_key, data.rejected_key | data.columns.rejected | rejected= * |
apply_chat_template, data.apply_chat_template | data.chat | true=always | conversations always use the template
tokenizer_chat_template, data.tokenizer_chat_template | chat_template | | a template file
input_template, data.input_template | ~ chat_template | write a chat template file and name it in chat_template
multiturn, data.multiturn | = | every assistant turn of a conversation is trained on
pretrain_mode, model.pretrain_mode_enable | sft.mask_prompt | true=false | rows of text
eval_dataset, eval.dataset | eval.path | @files |
eval_steps, eval.steps | eval.every | -1=0 * |
eval_temperature, eval.temperature | eval.temperature | |
eval_n_samples_per_prompt, eval.n_samples_per_prompt | eval.samples | |
dataloader_num_workers, data.dataloader_num_workers | = | rows are read directly
image_key, data.image_key, max_images_per_prompt, data.max_images_per_prompt, freeze_visual_encoder, actor.freeze_visual_encoder | - data.images | only text models are supported

# Preferences and rewards
beta, model.beta | dpo.beta, kto.beta | |
ipo, model.ipo_enable | dpo.loss | true=[ipo_sum] |
label_smoothing, model.label_smoothing | dpo.label_smoothing | @cdpo | with dpo.loss: cdpo
nll_loss_coef, model.nll_loss_coef | dpo.loss_weights | @rpo | sft in the list dpo.loss, with this weight
ref_pretrain, ref.model_name_or_path | dpo.reference, kto.reference | @model |
desirable_loss_weight | kto.desirable_weight | |
undesirable_loss_weight | kto.undesirable_weight | |
loss, model.loss_type | orm.loss | sigmoid=bradley_terry logexp=log_exp |
margin_loss, model.margin_loss_enable | = | a margin in the rows is used
compute_fp32_loss, model.compute_fp32_loss_enable | = | losses are f64
value_head_prefix, ds.value_head_prefix | = | the head is called score
placeholder_token | prm.placeholder | |
reward_tokens | prm.reward_tokens | @list |

# PPO and related methods
advantage_estimator, algo.advantage.estimator | algorithm | gae=ppo group_norm=grpo reinforce=reinforce_pp reinforce_baseline=reinforce_pp_baseline rloo=rloo dr_grpo=dr_grpo | | gae
rollout_batch_size, rollout.batch_size | ppo.minibatches, grpo.minibatches | @rollout_batch | rollout_batch_size x n_samples_per_prompt / train_batch_size | 1024
n_samples_per_prompt, rollout.n_samples_per_prompt | ppo.samples, grpo.group_size | | | 1
micro_rollout_batch_size, rollout.micro_batch_size, rollout.max_tokens_per_gpu, rollout_max_tokens_per_gpu, vllm_generate_batch_size, rollout.vllm_generate_batch_size, rollout_tasks_per_gpu | = | rollout.max_sequences bounds the sequences that are decoded concurrently
generate_max_len, rollout.max_new_tokens | rollout.max_new_tokens | | | 1024
prompt_max_len | train.max_length | @prompt_length | plus rollout.max_new_tokens
temperature, rollout.temperature | rollout.temperature | |
top_p, rollout.top_p | rollout.top_p | |
eps_clip, actor.eps_clip | ppo.clip_low, ppo.clip_high, grpo.clip_low, grpo.clip_high | @both | of both sides
eps_clip_low_high, actor.eps_clip_low_high | ppo.clip_low, ppo.clip_high, grpo.clip_low, grpo.clip_high | @two | two numbers
dual_clip, actor.dual_clip | ppo.dual_clip, grpo.dual_clip | |
value_clip, critic.value_clip | critic.value_clip | |
gamma, algo.advantage.gamma | ppo.gamma, reinforce_pp:grpo.gamma | |
lambd, algo.advantage.lambd | ppo.lambda | |
init_kl_coef, algo.kl.init_coef | ppo.kl_coef, reinforce_pp:grpo.reward_beta, grpo.beta | | in GRPO the coefficient is grpo.beta
kl_target, algo.kl.target | ppo.kl_target | @adaptive | with ppo.kl_schedule: adaptive
kl_horizon, algo.kl.horizon | ppo.kl_horizon | |
kl_estimator, algo.kl.estimator | ppo.kl, grpo.kl | |
use_kl_loss, algo.kl.use_loss | ppo.kl_place | true=loss |
use_kl_loss, algo.kl.use_loss | grpo.beta | true= | grpo.beta is the coefficient in the loss, grpo.reward_beta that in the reward
no_advantage_std_norm, algo.advantage.no_std_norm | grpo.scale_rewards | true=none |
entropy_loss_coef, actor.entropy_coef | ppo.entropy_coef, grpo.entropy_coef | |
policy_loss_type, actor.policy_loss_type | grpo.ratio | ppo= gspo=sequence |
freezing_actor_steps, critic.freezing_steps | critic.warmup_rounds | -1=0 * |
reward_clip_range, reward.clip_range | ppo.reward_clip, grpo.reward_clip | @magnitude |
overlong_buffer_len, reward.overlong_buffer_len | grpo.overlong_buffer | |
overlong_penalty_factor, reward.overlong_penalty_factor | grpo.overlong_factor | |
stop_properly_penalty_coef, reward.stop_properly_penalty_coef | grpo.truncated_scale | |
dynamic_filtering, algo.dynamic_filtering_enable | grpo.dynamic_sampling | |
dynamic_filtering_reward_range, algo.dynamic_filtering_range | grpo.dynamic_bounds | @list |
enable_vllm_is_correction, vllm_enable_is_correction, algo.advantage.is_correction_enable | grpo.correction | true=token | needed with rollout.weights: int8 only
algo.advantage.is_correction_type | grpo.correction_outside | tis=truncate icepop=mask seq-mask-tis=! |
vllm_is_truncated_threshold, algo.advantage.is_correction_threshold | grpo.correction_low, grpo.correction_high | @two | two numbers
critic_pretrain, critic.model_name_or_path | critic.model | @model |
reward_pretrain, reward.model_name_or_path | reward | @reward_model | the rule {rule: model, path: DIR}
remote_rm_url, reward.remote_url | reward | @rewards | a file FILE.py is {rule: python, function: FILE.py:reward_func, signature: openrlhf}
normalize_reward, reward.normalize_enable | reward | false= @normalize_reward | {rule: model, path: DIR, normalize: saved}: by the mean and std in the model's config.json
ptx_coef | - ppo.ptx_coef, grpo.ptx_coef | mixed pre-training losses are not supported
colocate_all_models, train.colocate_all, colocate_actor_ref, train.colocate_actor_ref, colocate_critic_reward, train.colocate_critic_reward | = | one process has all roles; a cluster file of troupe launch places them
actor_num_nodes, actor.num_nodes, actor_num_gpus_per_node, actor.num_gpus_per_node, ref_num_nodes, ref.num_nodes, ref_num_gpus_per_node, ref.num_gpus_per_node, critic_num_nodes, critic.num_nodes, critic_num_gpus_per_node, critic.num_gpus_per_node, reward_num_nodes, reward.num_nodes, reward_num_gpus_per_node, reward.num_gpus_per_node, vllm_num_engines, vllm.num_engines | - cluster.nodes | groups of a cluster file of troupe launch (docs/operations.md)
vllm_tensor_parallel_size, vllm.tensor_parallel_size | ~ parallel.rollout.tp | parallel.rollout.tp, or parallel of the role rollout in a cluster file
vllm_gpu_memory_utilization, vllm.gpu_memory_utilization | = | rollout.cache_tokens bounds the KV cache
vllm_sync_backend, vllm.sync_backend, vllm_sync_with_ray, vllm.sync_with_ray, enforce_eager, vllm.enforce_eager, vllm_enable_sleep, vllm.enable_sleep, deepspeed_enable_sleep, ds.enable_sleep, enable_prefix_caching, vllm.enable_prefix_caching, actor_init_on_gpu | = | there is no second engine
async_train, train.async_enable, async_queue_size, train.async_queue_size, partial_rollout, train.partial_rollout_enable | ~ async.mode, async.eta, async.partial | free or pinned samples beside training, at most async.eta updates old; partial rollouts are async.partial (docs/async.md)
agent_func_path, train.agent_func_path | ~ rollout.source | service: the agent is a program of its own that takes prompts and returns samples (docs/agents.md)
)";

}  // namespace troupe::launch::tools::tables
