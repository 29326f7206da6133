#include "launch/tools/tables/tool_texts.h"

namespace troupe::launch::tools::tables {

constinit const std::string_view trl_text = R"(
# Model and data
command | algorithm | sft=sft dpo=dpo kto=kto reward=orm grpo=grpo rloo=rloo prm=prm ppo=ppo cpo=cpo orpo=orpo | trl sft, trl dpo, trl reward and so on; --algorithm
model_name_or_path, model_name, sft_model_path | model | @model | a directory; download models with hf download
use_peft | lora.rank | @peft | true: lora_r (16 by default) is lora.rank; false: 0
model_revision, trust_remote_code, model_init_kwargs, ignore_bias_buffers | = | models are directories, and no code is read from them
dataset_name, datasets | data.path | @files | files; download data sets with hf download
dataset_config, dataset_train_split, dataset_test_split, test_split_size | ~ data.path, eval.path | name the files of the split in data.path, held-out ones in eval.path
dataset_streaming, streaming | data.stream | |
dataset_text_field | data.columns.text | text= * |
dataset_kwargs | = | rows are recognized by their columns (data.format)
shuffle_dataset | data.shuffle | |
max_length, max_seq_length | train.max_length | | | sft,dpo,kto,orm,cpo,orpo:1024
max_prompt_length | - data.max_prompt_length | prompts have train.max_length minus rollout.max_new_tokens; longer ones are dropped and counted
truncation_mode | = | answers are truncated at their end
chat_template_path | chat_template | | a template file
chat_template | chat_template | @template_text | a template in the file is written beside the run file
chat_template_kwargs | - chat_template_kwargs | write a template file and name it in chat_template
assistant_only_loss | sft.mask_prompt | true= false= | the default: every assistant turn is trained on
completion_only_loss | sft.mask_prompt | true= null= false=false |
disable_dropout | = | models are trained without dropout unless train.hidden_dropout or train.attention_dropout is set
router_aux_loss_coef | train.experts.coefficients | @list | of mixtures of experts
cast_lm_head_to_fp32 | = | logits and losses are f32
log_completions, num_completions_to_print, log_unique_prompts, log_multimodal, log_completions_hub_repo | = | samples.txt and samples.jsonl have the samples of each step

# Supervised fine-tuning and preferences
loss_type | sft.loss | nll=nll chunked_nll=nll dft=dft |
loss_type | dpo.loss | @list | a loss or a list of them, with TRL's names
loss_type | cpo.loss | sigmoid=sigmoid hinge=hinge ipo=ipo simpo=algorithm:simpo alphapo=algorithm:simpo | simpo is --algorithm simpo
loss_type | simpo.loss | sigmoid=sigmoid hinge=hinge ipo=ipo simpo= |
loss_type | kto.loss | kto=kto apo_zero_unpaired=apo_zero_unpaired |
loss_weights | dpo.loss_weights | @list |
beta | dpo.beta, cpo.beta, simpo.beta, orpo.beta, kto.beta, rloo:grpo.reward_beta, grpo.beta | |
label_smoothing | dpo.label_smoothing, cpo.label_smoothing, simpo.label_smoothing | | in DPO with dpo.loss: robust, exo_pair or aot
f_divergence_type | dpo.divergence | |
f_alpha_divergence_coef | dpo.divergence_alpha | |
ld_alpha | dpo.ld_alpha | |
use_weighting | dpo.weighting | |
discopop_tau | dpo.discopop_tau | |
rpo_alpha | dpo.loss_weights | @rpo | sft in the list dpo.loss, with this weight
precompute_ref_log_probs | dpo.precompute_reference | |
precompute_ref_batch_size | = | train.micro_batch_tokens bounds the memory
reference_free | - dpo.reference_free | use --algorithm simpo or cpo
ref_model | dpo.reference, kto.reference, grpo.reference, ppo.reference | @model |
model_adapter_name, ref_adapter_name, force_use_ref_model | = | the reference of a new adapter is its base, that of lora.adapter the adapter as it was (compat: trl)
sync_ref_model | dpo.sync_every, kto.sync_every | true=512 false= | every ref_model_sync_steps
ref_model_sync_steps | dpo.sync_every, kto.sync_every | |
ref_model_mixup_alpha | dpo.sync_share, kto.sync_share | |
simpo_gamma | simpo.gamma | |
cpo_alpha | cpo.nll_weight, simpo.nll_weight | |
alpha | cpo.alpha, simpo.alpha | | AlphaPO
desirable_weight | kto.desirable_weight | |
undesirable_weight | kto.undesirable_weight | |
center_rewards_coefficient | orm.center_rewards_coefficient | |
step_separator | prm.step_separator | |
train_on_last_step_only | prm.train_on_last_step_only | |

# GRPO and RLOO
num_generations, rloo_k | grpo.group_size | |
max_completion_length | rollout.max_new_tokens | | | grpo,rloo:512
generation_batch_size | grpo.minibatches | @generation_batch | its optimizer steps
steps_per_generation | grpo.minibatches | @steps_per_generation | divided by gradient_accumulation_steps
num_iterations | grpo.epochs | |
temperature | rollout.temperature | |
top_p | rollout.top_p | |
top_k | rollout.top_k | null=0 -1=0 * |
min_p | rollout.min_p | null= * |
repetition_penalty | rollout.repetition_penalty | |
generation_kwargs | ~ rollout.stop, rollout.presence_penalty | write the keys of rollout
cache_implementation, use_transformers_paged, use_transformers_continuous_batching, transformers_continuous_batching_config | = | sampling uses continuous batching over a paged cache
dataset_prompt_column | data.columns.prompt | |
system_prompt | data.system | | the system message of rows without one
reward_funcs | reward | @rewards | a list of rules; a Python function is {rule: python, function: FILE.py:NAME}
reward_weights | reward | @reward_weights | the weight of each rule: {rule: boxed, weight: 0.5}
multi_objective_aggregation | grpo.normalize_each_reward | sum_then_normalize= normalize_then_sum=true |
epsilon | grpo.clip_low, grpo.clip_high | @both | of both sides, unless epsilon_high is set
epsilon_high | grpo.clip_high | null= * |
delta | grpo.delta | null= * |
loss_type | grpo.aggregation | grpo=grpo bnpo=bnpo dapo=dapo dr_grpo=dr_grpo cispo=algorithm:cispo sapo=algorithm:sapo vespo=algorithm:vespo luspo=algorithm:luspo |
importance_sampling_level | grpo.ratio | token=token sequence=sequence sequence_token=sequence_token |
scale_rewards | grpo.scale_rewards | true=group group=group batch=batch false=none none=none mean=! |
mask_truncated_completions | grpo.mask_truncated | |
top_entropy_quantile | grpo.top_entropy_quantile | |
entropy_coef | grpo.entropy_coef | |
use_adaptive_entropy | grpo.entropy_schedule | true=adaptive false= |
entropy_coef_min | grpo.entropy_coef_min | |
entropy_coef_max | grpo.entropy_coef_max | |
entropy_coef_delta | grpo.entropy_delta | |
entropy_target | grpo.entropy_target | |
sapo_temperature_pos | grpo.sapo_temperature_pos | |
sapo_temperature_neg | grpo.sapo_temperature_neg | |
vespo_k_pos | grpo.vespo_k_pos | |
vespo_lambda_pos | grpo.vespo_lambda_pos | |
vespo_k_neg | grpo.vespo_k_neg | |
vespo_lambda_neg | grpo.vespo_lambda_neg | |
off_policy_mask_threshold | grpo.off_policy_mask | null= * |
use_bias_correction_kl | grpo.kl_times_ratio | |
normalize_advantages | grpo.normalize_advantages | true=samples false= |
reward_clip_range | grpo.reward_clip, ppo.reward_clip | null= @magnitude |
num_generations_eval | eval.samples | |
use_vllm, vllm_* | = | samples are generated inside the run, by the trainer's own kernels
vllm_importance_sampling_correction | grpo.correction | true= false= | not needed: trainer and rollout agree bit for bit
vllm_importance_sampling_mode | = | trainer and rollout agree bit for bit; grpo.correction corrects for int8 rollouts
vllm_importance_sampling_cap, vllm_importance_sampling_clip_max | grpo.correction_high | | used with grpo.correction
vllm_importance_sampling_clip_min | grpo.correction_low | null= * | used with grpo.correction
max_tool_calling_iterations, environment_factory, tools | ~ rollout.source | service: the program that calls tools takes prompts and returns samples (docs/agents.md)

# PPO and reward models
reward_model_path, reward_model_name_or_path | reward | @reward_model | the rule {rule: model, path: DIR}
value_model | critic.model | @model |
num_ppo_epochs | ppo.epochs | | | ppo:4
num_mini_batches | ppo.minibatches | |
total_episodes | train.steps | @episodes | divided by the samples of an optimizer step
response_length | rollout.max_new_tokens | | | ppo:53
kl_coef | ppo.kl_coef, grpo.beta | | in GRPO the coefficient is grpo.beta
kl_estimator | ppo.kl | |
cliprange | ppo.clip_low, ppo.clip_high | @both | of both sides
cliprange_value | critic.value_clip | |
vf_coef | critic.loss_coef | |
gamma | ppo.gamma, grpo.gamma | |
lam | ppo.lambda | |
whiten_rewards | ppo.whiten_rewards | |
missing_eos_penalty | ppo.missing_eos_penalty, grpo.missing_eos_penalty | null= * |
stop_token, stop_token_id | = | the model's end token ends a sample; rollout.stop has stop strings
local_rollout_forward_batch_size | = | rollout.max_sequences bounds the sequences that are decoded concurrently
num_sample_generations | = | samples.txt has samples of every step
)";

}  // namespace troupe::launch::tools::tables
