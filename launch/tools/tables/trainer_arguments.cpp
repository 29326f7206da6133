#include "launch/tools/tables/tool_texts.h"

namespace troupe::launch::tools::tables {

constinit const std::string_view trainer_arguments_text = R"(
# Arguments of every trainer
output_dir | output | |
per_device_train_batch_size | train.batch_size | @batch | x gradient_accumulation_steps x devices: one number, of the whole optimizer step; memory is bounded by train.micro_batch_tokens | 8
gradient_accumulation_steps | train.batch_size | @batch | a factor of it; train.micro_batch_tokens splits a step without changing its result | 1
per_device_eval_batch_size, eval_accumulation_steps | = | held-out rows are evaluated in batches of train.batch_size
auto_find_batch_size | = | train.micro_batch_tokens bounds the memory of a step
learning_rate | train.learning_rate | |
lr_scheduler_type | train.schedule | linear=linear cosine=cosine constant=constant constant_with_warmup=constant inverse_sqrt=inverse_sqrt warmup_stable_decay=wsd cosine_with_min_lr=cosine | | linear
lr_scheduler_kwargs | ~ train.min_lr_ratio, train.decay_steps | set train.min_lr_ratio or train.decay_steps
warmup_steps | train.warmup_steps | @whole | below 1: train.warmup_ratio
warmup_ratio | train.warmup_ratio | |
num_train_epochs | train.epochs | @epochs | | 3
max_steps | train.steps | -1=0 * |
max_grad_norm | train.max_grad_norm | |
weight_decay | train.weight_decay | |
adam_beta1 | train.betas | @beta1 | the first of the two
adam_beta2 | train.betas | @beta2 | the second of the two
adam_epsilon | train.eps | |
optim | train.betas | adamw_torch= adamw_torch_fused= adamw_hf= adamw= | AdamW is the only optimizer
optim_args, optim_target_modules | - train.optimizer | AdamW is the only optimizer: train.betas, train.eps, train.weight_decay
bf16 | train.dtype | true=bf16 false= | master weights stay f32
fp16 | train.dtype | true=f16 false= | with a dynamic loss scale (train.loss_scale)
half_precision_backend, fp16_opt_level | = | one implementation of each type
tf32 | = | products are f32 or bf16 (train.dtype)
dtype, torch_dtype | train.dtype | bfloat16=bf16 float32=f32 auto= | data type of products; weights are read in any type
seed | train.seed | | | 42
data_seed | train.seed | |
full_determinism | = | the same run always gives the same bits
logging_steps | train.log_every | @steps | metrics.jsonl has every step
logging_first_step, logging_strategy, log_level, logging_dir, logging_nan_inf_filter, log_on_each_node, disable_tqdm, include_num_input_tokens_seen, include_tokens_per_second | = | metrics.jsonl has every step; a terminal gets a progress line
save_steps | train.save_every | -1=0 @steps |
save_strategy | train.save_every | steps= no=0 epoch=! best=! | no: 0, only after the last step
save_total_limit | train.keep_last | 1=2 * | at least 2
save_only_model | train.save_only_model | |
save_safetensors, save_on_each_node | = | weights are always safetensors
resume_from_checkpoint | resume | true= false=never null= * | auto, the default, resumes from the newest checkpoint in output
overwrite_output_dir | resume | true= false= | a folder with a run is resumed; choose another output for a new run
eval_dataset | eval.path | @files |
eval_steps | eval.every | @steps |
eval_strategy, evaluation_strategy | eval.every | steps= no= epoch=! | eval.every counts steps; without eval.path nothing is evaluated
eval_on_start, eval_delay, do_eval | = | eval.path and eval.every decide; grpo and ppo also evaluate before the first step
do_train, do_predict, predict_with_generate | = | troupe train trains; troupe generate and troupe score are commands
load_best_model_at_end | train.keep_best | @best | the checkpoint that the link best in output names
metric_for_best_model | train.keep_best | @best_metric | eval/loss; with a minus in front, lower is better
greater_is_better | train.keep_best | @best | a plus or a minus in front of the metric
report_to | = | TensorBoard events and metrics.jsonl are always written; launch/examples/track_metrics.py sends them to W&B or MLflow (docs/tracking.md)
run_name, project, trackio_space_id | ~ output | the name of the run is its output directory
gradient_checkpointing | train.recompute | true=[full] false= | same results with less memory
gradient_checkpointing_kwargs, activation_offloading, use_reentrant_gc | = | train.recompute has no further settings
dataloader_drop_last | data.last_batch | true=drop false=keep | rows at the end of an epoch that do not fill a batch | sft,dpo,kto,orm,prm,simpo,cpo,orpo:false
packing, neat_packing, padding_free, group_by_length, length_column_name, train_sampling_strategy, packing_strategy, eval_packing, pad_to_multiple_of | = | sequences are packed without padding and never attend to each other
pad_token, eos_token | - model_overrides.special_tokens | special tokens are those of the model's folder
use_liger_kernel, enable_liger_kernel, torch_compile, attn_implementation, flash_attn, use_unsloth, use_unsloth_gc | = | there is one set of kernels
deepspeed, fsdp, fsdp_config, accelerator_config, parallelism_config, ddp_backend, ddp_find_unused_parameters, ddp_bucket_cap_mb, ds3_gather_for_generation, tp_size | ~ parallel.dp, parallel.tp, parallel.zero | parallel.dp and parallel.tp, with mpirun or troupe launch; parallel.zero: 1 is ZeRO-1, and there is no FSDP
ddp_timeout | parallel.timeout | @capped | seconds that a rank waits for another; at most 604800
local_rank, use_cpu, no_cuda, device_map, low_cpu_mem_usage | = | the processor is the only device
dataloader_num_workers, dataloader_pin_memory, dataloader_persistent_workers, dataloader_prefetch_factor, dataset_num_proc, preprocessing_num_workers, preprocessing_batch_size, overwrite_cache, cache_dir, data_shared_file_system | = | rows are read and encoded directly, without a cache
remove_unused_columns, label_names, no_remove_unused_columns | = | unused columns are ignored
push_to_hub, hub_model_id, hub_token, hub_private_repo, hub_strategy | - hub.repository | upload the checkpoint's folder with hf upload; troupe opens no outbound connection
neftune_noise_alpha, label_smoothing_factor, average_tokens_across_devices, past_index, torch_empty_cache_steps, restore_callback_states_from_checkpoint, skip_memory_metrics, ignore_data_skip | - train.neftune_alpha, train.label_smoothing | omit it

# Adapters
lora_r, lora_rank | lora.rank | |
lora_alpha | lora.alpha | |
lora_dropout | lora.dropout | |
lora_target_modules, lora_target, target_modules | lora.targets | all-linear=[all-linear] all=[all-linear] @list | a list: [q_proj, v_proj]
use_rslora | lora.rslora | |
use_dora | lora.dora | |
lora_modules_to_save, additional_target, lora_target_parameters | - lora.modules_to_save, lora.target_parameters | only adapters are trained and saved
lora_task_type | = | it follows from the method
load_in_4bit, load_in_8bit, quantization_bit, quantization_method, quantization_type, double_quantization, bnb_4bit_quant_type, use_bnb_nested_quant, bnb_4bit_quant_storage, quantization_device_map | - train.quantization | train the adapter over the unquantized model; rollout.weights: int8 saves memory in sampling
)";

}  // namespace troupe::launch::tools::tables
