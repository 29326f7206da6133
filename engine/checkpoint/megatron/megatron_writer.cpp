#include "engine/checkpoint/megatron/megatron_writer.h"

#include "engine/base/text/text.h"
#include "engine/checkpoint/megatron/megatron_folder.h"
#include "engine/checkpoint/pickle/torch_writer.h"

namespace troupe::engine::checkpoint {
namespace {

using models::DecoderSpec;

/// Sets root["a"]["b"]["c"] for the name "a/b/c". The last part may contain dots.
void insert(PickleValue::Dict& root, std::string_view name, TensorSlot slot) {
  const auto slash = name.find('/');
  if (slash == name.npos) {
    root.items.emplace_back(std::string(name), std::move(slot));
    return;
  }
  const std::string key(name.substr(0, slash));
  for (auto& [known, value] : root.items)
    if (const auto* text = std::get_if<std::string>(&known.value()); text && *text == key)
      return insert(*value.dict(), name.substr(slash + 1), std::move(slot));
  root.items.emplace_back(key, PickleValue::Dict{.ordered = true});
  insert(*root.items.back().second.dict(), name.substr(slash + 1), std::move(slot));
}

PickleValue::Dict architecture_of(const DecoderSpec& spec, const MegatronGrid& grid) {
  PickleValue::Dict out;
  out.items = {{"num_layers", spec.layers},
               {"hidden_size", spec.width},
               {"ffn_hidden_size", spec.inner},
               {"num_attention_heads", spec.heads},
               {"num_query_groups", spec.kv_heads},
               {"kv_channels", spec.head_size},
               {"padded_vocab_size", grid.vocabulary},
               {"untie_embeddings_and_output_weights", !spec.tied},
               {"tensor_model_parallel_size", grid.tensor},
               {"pipeline_model_parallel_size", grid.pipeline()}};
  if (spec.latent)
    for (const auto& [key, value] :
         {std::pair{"q_lora_rank", spec.latent->query_rank},
          {"kv_lora_rank", spec.latent->key_rank},
          {"qk_rope_head_dim", std::int64_t{spec.latent->rotary}},
          {"qk_nope_head_dim", std::int64_t{spec.head_size - spec.latent->rotary}},
          {"v_head_dim", std::int64_t{spec.latent->value_size}}})
      out.items.emplace_back(key, value);
  return out;
}

/// A tensor of a file and the type that its parameters have in the source.
struct PlannedTensor {
  ShardTensor shard;
  StoredType from, to;
};

Result<std::vector<PlannedTensor>> plan_tensors(const std::vector<ShardTensor>& shards,
                                                const WeightSource& source,
                                                std::optional<StoredType> type) {
  std::vector<PlannedTensor> out;
  for (const ShardTensor& shard : shards) {
    const auto first = source.type(shard.blocks.front().parameter);
    RETURN_IF_ERROR(first);
    for (const RowBlock& block : shard.blocks) {
      const auto other = source.type(block.parameter);
      RETURN_IF_ERROR(other);
      if (*other != *first)
        return fail(Errc::unsupported,
                    cat("tensor ", quote(block.parameter), ": expected ", to_string(*first),
                        " as the tensors that it is joined with, found ", to_string(*other)));
    }
    out.push_back({shard, *first, type.value_or(*first)});
  }
  return out;
}

class RankWriter {
 public:
  RankWriter(const DecoderSpec& spec, const WeightSource& source, const MegatronOutput& output)
      : spec_(spec), source_(source), output_(output) {}

  Result<> write(int tensor, int pipeline, const std::string& path) {
    const MegatronGrid& grid = output_.grid;
    PickleValue::Dict root;
    root.items = {{"checkpoint_version", 3},
                  {"iteration", output_.iteration},
                  {"architecture", architecture_of(spec_, grid)}};
    std::vector<PlannedTensor> all;
    std::vector<ShardTensor> shards;
    for (int part = 0; part < grid.virtual_ranks(); ++part) {
      const auto of_part = shard_tensors(spec_, grid, tensor, pipeline, part);
      const auto planned = plan_tensors(of_part, source_, output_.type);
      RETURN_IF_ERROR(planned);
      shards.insert(shards.end(), of_part.begin(), of_part.end());
      PickleValue::Dict model{.ordered = true};
      for (const PlannedTensor& each : *planned)
        insert(model, each.shard.name, {each.to, each.shard.shape()});
      all.insert(all.end(), planned->begin(), planned->end());
      root.items.emplace_back(grid.virtual_ranks() > 1 ? cat("model", part) : "model",
                              std::move(model));
    }
    std::vector<OptimizerSlot> slots;
    if (output_.optimizer) {
      auto state = optimizer_value(shards, *output_.optimizer, slots);
      RETURN_IF_ERROR(state);
      root.items.emplace_back("optimizer", std::move(*state));
      root.items.emplace_back("opt_param_scheduler", output_.optimizer->entries.scheduler);
    }
    return write_file(path, std::move(root), all, slots);
  }

 private:
  Result<> write_file(const std::string& path, PickleValue::Dict root,
                      const std::vector<PlannedTensor>& tensors,
                      const std::vector<OptimizerSlot>& slots) {
    auto writer = TorchWriter::create(path, std::move(root));
    RETURN_IF_ERROR(writer);
    for (const PlannedTensor& each : tensors) {
      auto bytes = gather_shard(each.shard, source_, bits_of(each.from) / 8);
      RETURN_IF_ERROR(bytes);
      RETURN_IF_ERROR(convert_type(*bytes, each.from, each.to, each.shard.name));
      RETURN_IF_ERROR(writer->write(*bytes));
    }
    for (const OptimizerSlot& slot : slots) {
      const WeightSource& state = *output_.optimizer->tensors[static_cast<std::size_t>(slot.kind)];
      const auto type = state.type(slot.shard->blocks.front().parameter);
      RETURN_IF_ERROR(type);
      const auto bytes = gather_shard(*slot.shard, state, bits_of(*type) / 8);
      RETURN_IF_ERROR(bytes);
      RETURN_IF_ERROR(writer->write(*bytes));
    }
    return writer->finish();
  }

  const DecoderSpec& spec_;
  const WeightSource& source_;
  const MegatronOutput& output_;
};

}  // namespace

Result<> write_megatron(const DecoderSpec& spec, const WeightSource& source,
                        const MegatronOutput& output) {
  RankWriter writer(spec, source, output);
  ResultFolder& folder = output.folder;
  for (int pipeline = 0; pipeline < output.grid.pipeline(); ++pipeline)
    for (int tensor = 0; tensor < output.grid.tensor; ++tensor) {
      const std::string name =
          cat(iteration_name(output.iteration), '/',
              rank_folder(tensor, pipeline, output.grid.pipeline()), '/', rank_file);
      const auto written = folder.add(
          name, [&](const std::string& path) { return writer.write(tensor, pipeline, path); });
      RETURN_IF_ERROR(written);
      if (*written && output.written) output.written(cat(folder.target(), '/', name));
    }
  RETURN_IF_ERROR(folder.add(std::string(tracker_file), std::to_string(output.iteration)));
  return {};
}

}  // namespace troupe::engine::checkpoint
