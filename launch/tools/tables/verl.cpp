#include "launch/tools/tables/tool_texts.h"

namespace troupe::launch::tools::tables {

constinit const std::string_view verl_text = R"(
# Data
data.train_files | data.path | @files |
data.val_files | eval.path | @files | held-out rows
data.train_batch_size | ppo.minibatches, grpo.minibatches, train.batch_size | @rollout_batch | prompts of a rollout: divided by ppo_mini_batch_size | ppo,grpo:1024 sft:256
data.val_batch_size, data.validation_shuffle, data.val_max_samples | = | held-out rows are read in batches of train.batch_size
data.train_max_samples | data.max_samples | -1=0 null= * |
data.prompt_key | data.columns.prompt | @column |
data.response_key | data.columns.completion | @column |
data.reward_fn_key | = | reward has one list of rules for all rows; reward_model.ground_truth of a row is its answer
data.prompt_dict_keys | = | data.columns addresses nested values with dots: {prompt: extra_info.question}
data.response_dict_keys | = | data.columns addresses nested values with dots: {completion: extra_info.answer}
data.max_prompt_length | train.max_length | @prompt_length | plus rollout.max_new_tokens; longer prompts are dropped and counted
data.max_response_length | rollout.max_new_tokens | | | 512
data.max_length | train.max_length | |
data.shuffle | data.shuffle | |
data.seed, trainer.seed | train.seed | null= * |
data.filter_overlong_prompts, data.filter_overlong_prompts_workers, data.truncation, data.return_raw_chat, data.return_raw_input_ids, data.return_full_prompt, data.return_multi_modal_inputs, data.tokenizer, data.pad_mode, data.use_shm, data.dataloader_num_workers, data.trust_remote_code, data.balance_dp_token | = | rows are read directly; overlong prompts are dropped and counted
data.micro_batch_size, data.micro_batch_size_per_gpu, data.use_dynamic_bsz, data.max_token_len_per_gpu | = | train.micro_batch_tokens: tokens per pass, which never change the result
data.gen_batch_size | = | dynamic sampling draws train.batch_size x grpo.minibatches prompts at a time
data.multiturn*, data.chat_template | = | conversations are recognized; chat_template names another template
data.image_*, data.video_key | - data.images, data.videos | only text models are supported
data.custom_cls.*, data.sampler.*, data.datagen.*, data.apply_chat_template_kwargs* | ~ data.format, chat_template | rows are read by data.format, and chat_template names a template file

# Actor, reference and rollout
actor_rollout_ref.model.path, model.partial_pretrain, model.path | model | @model | a directory
actor_rollout_ref.model.custom_chat_template | chat_template | null= * | a template file
actor_rollout_ref.model.lora_rank, actor_rollout_ref.model.lora.rank, model.lora_rank | lora.rank | |
actor_rollout_ref.model.lora_alpha, actor_rollout_ref.model.lora.alpha, model.lora_alpha | lora.alpha | |
actor_rollout_ref.model.lora.dropout | lora.dropout | |
actor_rollout_ref.model.target_modules, actor_rollout_ref.model.lora.target_modules, model.target_modules | lora.targets | @list | a list: [q_proj, v_proj]
actor_rollout_ref.model.exclude_modules | lora.exclude | null= @list |
actor_rollout_ref.model.lora_adapter_path | lora.adapter | null= @model |
actor_rollout_ref.model.lora.* | - lora.fused_kernels | adapters are those of the section lora
actor_rollout_ref.model.enable_gradient_checkpointing, model.enable_gradient_checkpointing, critic.model.enable_gradient_checkpointing | train.recompute | true=[full] false= | same results with less memory
actor_rollout_ref.model.use_remove_padding, critic.model.use_remove_padding, use_remove_padding, actor_rollout_ref.actor.use_remove_padding | = | nothing is padded
actor_rollout_ref.model.*, model.*, actor_rollout_ref.hybrid_engine, actor_rollout_ref.nccl_timeout | = | models are directories, and there is one set of kernels
actor_rollout_ref.actor.ppo_mini_batch_size | train.batch_size | @batch | prompts of one optimizer step | 256
actor_rollout_ref.actor.ppo_micro_batch_size, actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu, actor_rollout_ref.actor.use_dynamic_bsz | = | train.micro_batch_tokens: tokens per pass, which never change the result
actor_rollout_ref.actor.ppo_max_token_len_per_gpu | train.micro_batch_tokens | |
actor_rollout_ref.actor.ppo_epochs | ppo.epochs, grpo.epochs | |
actor_rollout_ref.actor.shuffle | = | the minibatches of PPO are shuffled for every pass
actor_rollout_ref.actor.clip_ratio | ppo.clip_low, ppo.clip_high, grpo.clip_low, grpo.clip_high | @both | of both sides
actor_rollout_ref.actor.clip_ratio_low | ppo.clip_low, grpo.clip_low | @low_clip | from 1 on ratios have no lower bound
actor_rollout_ref.actor.clip_ratio_high | ppo.clip_high, grpo.clip_high | |
actor_rollout_ref.actor.clip_ratio_c | ppo.dual_clip, grpo.dual_clip | |
actor_rollout_ref.actor.loss_agg_mode | ppo.aggregation, grpo.aggregation | token-mean=bnpo seq-mean-token-mean=grpo seq-mean-token-sum=seq-mean-token-sum seq-mean-token-sum-norm=dr_grpo |
actor_rollout_ref.actor.loss_scale_factor | grpo.constant_length | null= * |
actor_rollout_ref.actor.policy_loss.loss_mode | grpo.policy_loss | vanilla= gspo=algorithm:gspo sapo=sapo clip_cov=clip_cov kl_cov=kl_cov gpg=grpo.estimator:gpg geo_mean=gmpo dppo_tv=dppo_tv cispo=cispo_band |
actor_rollout_ref.actor.policy_loss.clip_cov_ratio, actor_rollout_ref.actor.policy_loss.kl_cov_ratio | grpo.cov_ratio | |
actor_rollout_ref.actor.policy_loss.clip_cov_lb | grpo.cov_low | |
actor_rollout_ref.actor.policy_loss.clip_cov_ub | grpo.cov_high | |
actor_rollout_ref.actor.policy_loss.ppo_kl_coef | grpo.cov_kl | |
actor_rollout_ref.actor.tau_pos | grpo.sapo_temperature_pos | |
actor_rollout_ref.actor.tau_neg | grpo.sapo_temperature_neg | |
actor_rollout_ref.actor.use_kl_loss | grpo.beta | true= false=0 | grpo.beta above 0 is a KL term in the loss
actor_rollout_ref.actor.use_kl_loss | ppo.kl_place | true=loss false= |
actor_rollout_ref.actor.kl_loss_coef | grpo.beta, ppo.kl_coef | @kl_loss | used with use_kl_loss
actor_rollout_ref.actor.kl_loss_type | grpo.kl, ppo.kl | low_var_kl=k3 kl=k1 mse=k2 abs=abs k1=k1 k2=k2 k3=k3 low_var_kl+=k3+ kl+=k1+ |
actor_rollout_ref.actor.entropy_coeff | grpo.entropy_coef, ppo.entropy_coef | |
actor_rollout_ref.actor.optim.lr, optim.lr | train.learning_rate | | | sft:1e-5
actor_rollout_ref.actor.optim.lr_warmup_steps | train.warmup_steps | -1=0 null= * |
actor_rollout_ref.actor.optim.lr_warmup_steps_ratio, optim.lr_warmup_steps_ratio | train.warmup_ratio | | | sft:0.1
actor_rollout_ref.actor.optim.weight_decay, optim.weight_decay | train.weight_decay | | | 0.01
actor_rollout_ref.actor.optim.betas, optim.betas | train.betas | @list | | sft:[0.9,0.95]
actor_rollout_ref.actor.optim.min_lr_ratio, optim.min_lr_ratio | train.min_lr_ratio | null= * |
optim.min_lr | train.min_lr_ratio | @min_lr | divided by optim.lr
optim.lr_warmup_init | ~ train.warmup_start_ratio | the rate at step 0 over the highest
actor_rollout_ref.actor.optim.lr_scheduler_type, actor_rollout_ref.actor.optim.warmup_style, optim.lr_scheduler, optim.lr_decay_style, optim.warmup_style | train.schedule | null= constant=constant cosine=cosine wsd=wsd linear=linear | | ppo,grpo:constant sft:cosine
actor_rollout_ref.actor.optim.clip_grad, optim.clip_grad, actor_rollout_ref.actor.grad_clip | train.max_grad_norm | |
actor_rollout_ref.actor.optim.total_training_steps, actor_rollout_ref.actor.optim.num_cycles | = | the schedule spans the run
actor_rollout_ref.actor.optim.* | - train.optimizer | AdamW is the only optimizer
actor_rollout_ref.actor.fsdp_config.*, actor_rollout_ref.ref.fsdp_config.*, critic.model.fsdp_config.*, reward_model.model.fsdp_config.*, actor_rollout_ref.actor.strategy, actor_rollout_ref.ref.strategy, critic.strategy, *ulysses_sequence_parallel_size | ~ parallel.dp, parallel.tp, parallel.zero, parallel.cp | parallel.dp and parallel.tp; parallel.zero: 1 divides the optimizer state over replicas, weights are not divided and nothing is offloaded
actor_rollout_ref.actor.megatron.tensor_model_parallel_size | parallel.tp | |
actor_rollout_ref.actor.megatron.pipeline_model_parallel_size | parallel.pp | |
actor_rollout_ref.ref.megatron.tensor_model_parallel_size | parallel.reference.tp | |
actor_rollout_ref.ref.megatron.pipeline_model_parallel_size | parallel.reference.pp | |
critic.megatron.tensor_model_parallel_size | parallel.critic.tp | |
critic.megatron.pipeline_model_parallel_size | parallel.critic.pp | |
actor_rollout_ref.actor.megatron.*, actor_rollout_ref.ref.megatron.*, critic.megatron.*, engine.* | ~ parallel.tp, parallel.dp, parallel.pp, parallel.vpp, parallel.cp, parallel.sp | the axes of the grid
actor_rollout_ref.actor.use_torch_compile, actor_rollout_ref.actor.use_fused_kernels, actor_rollout_ref.actor.entropy_*, actor_rollout_ref.actor.calculate_*, actor_rollout_ref.actor.use_prefix_grouper, actor_rollout_ref.actor.data_loader_seed, actor_rollout_ref.actor.rollout_n | = | there is one set of kernels; train.share_prefixes computes the prompt of a group once
actor_rollout_ref.actor.checkpoint.*, trainer.checkpoint.*, checkpoint.* | = | a checkpoint has the model and the training state
actor_rollout_ref.actor.profiler.*, actor_rollout_ref.ref.profiler.*, critic.profiler.*, global_profiler.*, actor_rollout_ref.actor.router_replay.* | ~ profile.enabled, profile.step_start, profile.step_end | docs/operations.md
actor_rollout_ref.actor.freeze_vision_tower | - data.images | only text models are supported
actor_rollout_ref.ref.*, ref.log_prob_use_dynamic_bsz, rollout.log_prob_use_dynamic_bsz | = | the reference is scored in passes of train.micro_batch_tokens
actor_rollout_ref.rollout.n | grpo.group_size, ppo.samples | | | 1
actor_rollout_ref.rollout.temperature | rollout.temperature | |
actor_rollout_ref.rollout.top_p | rollout.top_p | |
actor_rollout_ref.rollout.top_k | rollout.top_k | -1=0 * | 0 is all tokens
actor_rollout_ref.rollout.max_num_seqs | rollout.max_sequences | |
actor_rollout_ref.rollout.response_length | rollout.max_new_tokens | |
actor_rollout_ref.rollout.quantization | rollout.weights | null= int8=int8 fp8=! |
actor_rollout_ref.rollout.tensor_model_parallel_size, actor_rollout_ref.rollout.data_parallel_size, actor_rollout_ref.rollout.expert_parallel_size, actor_rollout_ref.rollout.pipeline_model_parallel_size | ~ parallel.rollout.tp, parallel.rollout.pp | parallel.rollout.tp and parallel.rollout.pp, or parallel of the role rollout in a cluster file
actor_rollout_ref.rollout.val_kwargs.n | eval.samples | |
actor_rollout_ref.rollout.val_kwargs.temperature | eval.temperature | |
actor_rollout_ref.rollout.val_kwargs.* | = | held-out prompts are sampled as in rollout
actor_rollout_ref.rollout.multi_turn.*, actor_rollout_ref.rollout.agent.* | ~ rollout.source | service: the program that calls tools takes prompts and returns samples (docs/agents.md)
actor_rollout_ref.rollout.* | = | samples are generated inside the run; rollout.cache_tokens bounds the KV cache

# Algorithm
algorithm.adv_estimator | algorithm | gae=ppo grpo=grpo rloo=rloo rloo_vectorized=rloo remax=remax reinforce_plus_plus=reinforce_pp reinforce_plus_plus_baseline=reinforce_pp_baseline opo=algorithm:grpo,grpo.estimator:opo gpg=algorithm:grpo,grpo.estimator:gpg grpo_passk=algorithm:grpo,grpo.estimator:pass_at_k | | gae
algorithm.gamma | ppo.gamma, reinforce_pp:grpo.gamma | |
algorithm.lam | ppo.lambda | |
algorithm.use_kl_in_reward | ppo.kl_place | true=reward false= | with ppo.kl_coef above 0
algorithm.use_kl_in_reward | grpo.reward_beta | true= false= | grpo.reward_beta above 0 is a KL penalty in the reward
algorithm.kl_penalty | ppo.kl, grpo.reward_kl | kl=k1 k1=k1 abs=abs mse=k2 k2=k2 low_var_kl=k3 k3=k3 |
algorithm.kl_ctrl.kl_coef | ppo.kl_coef, grpo.reward_beta | @kl_reward | used with use_kl_in_reward
algorithm.kl_ctrl.type | ppo.kl_schedule | fixed=fixed adaptive=adaptive |
algorithm.kl_ctrl.target_kl | ppo.kl_target | | in nats per sample (verl: per token)
algorithm.kl_ctrl.horizon | ppo.kl_horizon | |
algorithm.norm_adv_by_std_in_grpo | grpo.scale_rewards | true=group false=none |
algorithm.filter_groups.enable | grpo.dynamic_sampling | |
algorithm.filter_groups.metric | grpo.dynamic_metric | acc= score= seq_reward= seq_final_reward= * | the label of a reward rule; empty: the total reward
algorithm.filter_groups.max_num_gen_batches | grpo.max_refills | |
algorithm.rollout_correction.rollout_is | grpo.correction | null= token=token sequence=sequence |
algorithm.rollout_correction.rollout_is_threshold | grpo.correction_low, grpo.correction_high | null= @band | HIGH or LOW_HIGH
algorithm.rollout_correction.rollout_rs | grpo.filter | null= seq_mean_k1=geometric seq_sum_k1=sequence | with k2 and k3: grpo.filter_by
algorithm.rollout_correction.rollout_rs_threshold | grpo.filter_low, grpo.filter_high | null= @band | HIGH or LOW_HIGH; one filter
algorithm.rollout_correction.*, algorithm.use_pf_ppo, algorithm.pf_ppo.* | ~ grpo.correction, grpo.filter, grpo.proximal | grpo.correction, grpo.filter and grpo.proximal are the corrections
algorithm.kl_ctrl.*, algorithm.lam_*, algorithm._target_ | = | not a setting of the method

# Critic
critic.model.path | critic.model | @model |
critic.optim.lr | critic.learning_rate | |
critic.optim.lr_warmup_steps | critic.warmup_steps | -1=0 null= * |
critic.optim.lr_warmup_steps_ratio | critic.warmup_ratio | |
critic.optim.weight_decay | critic.weight_decay | | | ppo:0.01
critic.optim.clip_grad, critic.grad_clip | critic.max_grad_norm | |
critic.optim.min_lr_ratio | critic.min_lr_ratio | null= * |
critic.optim.lr_scheduler_type, critic.optim.warmup_style | critic.schedule | null= constant=constant cosine=cosine linear=linear |
critic.cliprange_value | critic.value_clip | |
critic.ppo_epochs, critic.ppo_mini_batch_size | = | the critic is updated with the policy (ppo.epochs, train.batch_size)
critic.* | = | the critic has the policy's passes and kernels

# Reward and trainer
custom_reward_function.path, reward.custom_reward_function.path | reward | @rewards | the rule {rule: python, function: FILE.py:NAME, signature: verl}
custom_reward_function.name, reward.custom_reward_function.name | reward | @reward_part | NAME of the rule python
custom_reward_function.reward_kwargs.*, reward.custom_reward_function.reward_kwargs.* | reward | @reward_part | arguments of the rule python
custom_reward_function.*, reward.custom_reward_function.*, reward_model.reward_manager, reward_manager.*, reward_model.reward_loop_*, reward_model.use_reward_loop, reward_model.launch_reward_fn_async, reward_model.sandbox_fusion.*, reward_model.num_workers | ~ reward | a list of rules in reward; a Python function is a rule python (docs/rewards.md)
reward_model.enable | = | a rule {rule: model, path: DIR} in reward
reward_model.model.path | reward | @reward_model | the rule {rule: model, path: DIR}
reward_model.overlong_buffer.enable, reward_model.reward_kwargs.overlong_buffer_cfg.enable | grpo.overlong_buffer | true= false= | grpo.overlong_buffer above 0
reward_model.overlong_buffer.len, reward_model.reward_kwargs.overlong_buffer_cfg.len | grpo.overlong_buffer | |
reward_model.overlong_buffer.penalty_factor, reward_model.reward_kwargs.overlong_buffer_cfg.penalty_factor | grpo.overlong_factor | |
reward_model.* | = | reward models are scored in passes of train.micro_batch_tokens
trainer.total_epochs | train.epochs | @epochs | | ppo,grpo:30 sft:4
trainer.total_training_steps | train.steps | null= @rollout_steps | rollouts times the optimizer steps of each
trainer.save_freq | train.save_every | -1=0 false=0 after_each_epoch=! @rollout_steps | rollouts times the optimizer steps of each | ppo,grpo,sft:0
trainer.max_actor_ckpt_to_keep, trainer.max_critic_ckpt_to_keep | train.keep_last | null=0 1=2 * | at least 2
trainer.default_local_dir | output | |
trainer.resume_mode | resume | auto=auto disable=never resume_path= |
trainer.resume_from_path | resume | null= * |
trainer.critic_warmup | critic.warmup_rounds | |
trainer.test_freq | eval.every | -1=0 false=0 after_each_epoch=! @rollout_steps | rollouts times the optimizer steps of each
trainer.val_before_train | = | grpo and ppo evaluate before the first step if eval.path is set
trainer.val_only | - train.evaluate_only | troupe eval
trainer.logger, trainer.project_name, trainer.experiment_name, trainer.log_val_generations, trainer.rollout_data_dir, trainer.validation_data_dir | = | metrics.jsonl, TensorBoard events and samples.txt are in output; launch/examples/track_metrics.py sends them to W&B or MLflow (docs/tracking.md)
trainer.nnodes, trainer.n_gpus_per_node | - cluster.nodes | start as many processes with mpirun -n N or a cluster file of troupe launch; the batch does not depend on it
trainer.* | = | there is no Ray, and one kind of device
ray_kwargs.*, ray_init.*, transfer_queue.*, hydra.*, defaults | = | there is no Ray and no Hydra
)";

}  // namespace troupe::launch::tools::tables
