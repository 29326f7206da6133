// The models that a run trains: where their weights and moments come from, and how an adapter is
// loaded and saved.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/checkpoint/write_checkpoint.h"
#include "engine/models/decoder.h"
#include "engine/train/trainer.h"
#include "launch/run/roles.h"

namespace troupe::launch::run {

/// The folder of the run's output with the critic's checkpoints.
inline constexpr std::string_view critic_folder = "critic", reference_folder = "reference";

/// This rank's part of a model, in the grid of `mesh` (nullptr: one rank) with the stages and the
/// context groups of `parallel`. Values are f32.
engine::models::ModelPart part_of(const config::ParallelConfig& parallel,
                                  const engine::parallel::Mesh* mesh);
/// That of the role's model.
engine::models::ModelPart part_of(const RoleParts& parts);
/// The same for a model that is trained: with the types of train.weights and train.gradients.
engine::models::ModelPart trained_part_of(const RoleParts& parts);

/// The policy: restored from the checkpoint that the run resumes from, or with its starting
/// weights, under a fresh score head where the algorithm trains one. With lora.*, the base and its
/// adapter. Throws Failure, as the others do; also if the checkpoint holds a different adapter.
std::unique_ptr<engine::train::Trainer> load_trainer(const RoleParts& parts);
std::unique_ptr<engine::train::Trainer> load_critic(const RoleParts& parts);

/// The checkpoint of another model of the run (its folder is `folder`) with the step of the
/// policy's checkpoint `policy`. Throws Failure if it is missing or damaged.
std::string companion_checkpoint(const std::string& policy, std::string_view folder);

/// The base model with an adapter that has no effect until its weights arrive by message.
std::unique_ptr<engine::models::Decoder> load_adapted_decoder(const RoleParts& parts);

/// What checkpoints of a model from `source` have in place of its files: they are used with the
/// template and the tokenizer that they were trained with. Throws Failure.
engine::checkpoint::CompanionTexts companion_texts_of(const config::RunConfig& config,
                                                      const std::string& source);

/// Writes a checkpoint's adapter in PEFT's format, with the base's tokenizer beside it.
engine::checkpoint::ModelWriter adapter_writer(const config::RunConfig& config,
                                               const engine::models::DecoderSpec& spec);

}  // namespace troupe::launch::run
