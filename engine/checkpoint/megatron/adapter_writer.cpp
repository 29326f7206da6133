#include "engine/checkpoint/megatron/adapter_writer.h"

#include <algorithm>
#include <bit>
#include <set>
#include <span>
#include <string_view>

#include "engine/base/text/text.h"
#include "engine/checkpoint/megatron/megatron_folder.h"
#include "engine/checkpoint/pickle/torch_writer.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::string_view weight_suffix = ".weight", peft_prefix = "base_model.model.";

std::string block_module(const RowBlock& block) {
  const std::string& name = block.parameter;
  return name.ends_with(weight_suffix) ? name.substr(0, name.size() - weight_suffix.size()) : "";
}

/// The modules of a tensor in the order of their first rows.
std::vector<std::string> modules_of(const ShardTensor& tensor) {
  std::vector<std::string> out;
  if (tensor.vector) return out;
  for (const RowBlock& block : tensor.blocks)
    if (std::ranges::find(out, block_module(block)) == out.end())
      out.push_back(block_module(block));
  return out;
}

/// A tensor of a rank's file with its matrices.
struct Joined {
  std::string name;  ///< of the weight, without ".weight"
  std::int64_t rank = 0, columns = 0, rows = 0;
  std::vector<float> a, b;  ///< [rank, columns], [rows, rank]
};

class AdapterJoiner {
 public:
  AdapterJoiner(const JoinedAdapter& adapter, std::int64_t copies)
      : adapter_(adapter), copies_(copies), rank_(copies * adapter.rank) {}

  /// The adapter of a tensor; empty A and B where none of its modules has one.
  Joined join(const ShardTensor& tensor) {
    const std::vector<std::string> modules = modules_of(tensor);
    const auto has = [&](const std::string& module) { return adapter_.modules.contains(module); };
    if (std::ranges::none_of(modules, has)) return {};
    Joined out{.name = tensor.name.substr(0, tensor.name.size() - weight_suffix.size()),
               .rank = rank_,
               .columns = tensor.columns,
               .rows = tensor.shape()[0]};
    out.a.assign(static_cast<std::size_t>(rank_ * out.columns), 0);
    out.b.assign(static_cast<std::size_t>(out.rows * rank_), 0);
    for (std::size_t m = 0; m < modules.size(); ++m)
      if (has(modules[m])) add(tensor, modules[m], static_cast<std::int64_t>(m), out);
    return out;
  }
  const std::set<std::string>& placed() const { return placed_; }

 private:
  void add(const ShardTensor& tensor, const std::string& module, std::int64_t m, Joined& out) {
    const AdapterModule& from = adapter_.modules.at(module);
    const std::int64_t r = adapter_.rank;
    for (std::int64_t i = 0; i < r; ++i)
      std::copy_n(from.a.begin() + i * tensor.all_columns + tensor.first_column, tensor.columns,
                  out.a.begin() + (m * r + i) * tensor.columns);
    std::int64_t row = 0;
    for (const RowBlock& block : tensor.blocks) {
      for (std::int64_t i = 0; i < block.count; ++i, ++row)
        for (std::int64_t k = 0; block_module(block) == module && k < r; ++k)
          out.b[static_cast<std::size_t>(row * rank_ + m * r + k)] =
              static_cast<float>(copies_) *
              from.b[static_cast<std::size_t>((block.first + i) * r + k)];
    }
    placed_.insert(module);
  }

  const JoinedAdapter& adapter_;
  std::int64_t copies_, rank_;
  std::set<std::string> placed_;
};

PickleValue::Dict adapter_root(const JoinedAdapter& adapter, std::int64_t copies,
                               std::int64_t iteration) {
  PickleValue::Dict lora, root;
  lora.items = {
      {"rank", adapter.rank}, {"alpha", TensorSlot::number(adapter.alpha)}, {"copies", copies}};
  root.items = {{"checkpoint_version", 3}, {"iteration", iteration}, {"lora", std::move(lora)}};
  return root;
}

/// One file; `parts`: by virtual rank.
Result<> write_adapter_rank(const std::string& path, PickleValue::Dict root,
                            const std::vector<std::vector<Joined>>& parts) {
  for (std::size_t part = 0; part < parts.size(); ++part) {
    PickleValue::Dict model{.ordered = true};
    for (const Joined& each : parts[part]) {
      model.items.emplace_back(cat(peft_prefix, each.name, ".lora_A.default.weight"),
                               TensorSlot{StoredType::f32, {each.rank, each.columns}});
      model.items.emplace_back(cat(peft_prefix, each.name, ".lora_B.default.weight"),
                               TensorSlot{StoredType::f32, {each.rows, each.rank}});
    }
    root.items.emplace_back(parts.size() > 1 ? cat("model", part) : "model", std::move(model));
  }
  auto writer = TorchWriter::create(path, std::move(root));
  RETURN_IF_ERROR(writer);
  for (const auto& part : parts)
    for (const Joined& each : part) {
      RETURN_IF_ERROR(writer->write(std::as_bytes(std::span(each.a))));
      RETURN_IF_ERROR(writer->write(std::as_bytes(std::span(each.b))));
    }
  return writer->finish();
}

Result<> check_placed(const JoinedAdapter& adapter, const std::set<std::string>& placed) {
  for (const auto& [module, matrices] : adapter.modules)
    if (!placed.contains(module))
      return fail(Errc::unsupported,
                  cat("an adapter of ", module,
                      ": MindSpeed's checkpoints have none; expected modules of attention and MLP "
                      "(--lora-target-modules linear_qkv linear_proj linear_fc1 linear_fc2)"));
  return {};
}

}  // namespace

std::int64_t joined_copies(const models::DecoderSpec& spec, const MegatronGrid& grid,
                           const JoinedAdapter& adapter) {
  std::size_t most = 1;
  for (int pipeline = 0; pipeline < grid.pipeline(); ++pipeline)
    for (int part = 0; part < grid.virtual_ranks(); ++part)
      for (const ShardTensor& tensor : shard_tensors(spec, grid, 0, pipeline, part)) {
        const auto modules = modules_of(tensor);
        const bool adapted = std::ranges::any_of(
            modules, [&](const auto& module) { return adapter.modules.contains(module); });
        if (adapted) most = std::max(most, modules.size());
      }
  return static_cast<std::int64_t>(std::bit_ceil(most));
}

Result<> write_megatron_adapter(const models::DecoderSpec& spec, const MegatronGrid& grid,
                                const JoinedAdapter& adapter, std::int64_t iteration,
                                ResultFolder& folder) {
  const std::int64_t copies = joined_copies(spec, grid, adapter);
  AdapterJoiner joiner(adapter, copies);
  for (int pipeline = 0; pipeline < grid.pipeline(); ++pipeline)
    for (int tensor = 0; tensor < grid.tensor; ++tensor) {
      std::vector<std::vector<Joined>> parts;
      for (int part = 0; part < grid.virtual_ranks(); ++part) {
        auto& joined = parts.emplace_back();
        for (const ShardTensor& each : shard_tensors(spec, grid, tensor, pipeline, part))
          if (Joined made = joiner.join(each); !made.a.empty()) joined.push_back(std::move(made));
      }
      const std::string name = cat(iteration_name(iteration), '/',
                                   rank_folder(tensor, pipeline, grid.pipeline()), '/', rank_file);
      RETURN_IF_ERROR(folder.add(name, [&](const std::string& path) {
        return write_adapter_rank(path, adapter_root(adapter, copies, iteration), parts);
      }));
    }
  RETURN_IF_ERROR(check_placed(adapter, joiner.placed()));
  RETURN_IF_ERROR(folder.add(std::string(tracker_file), std::to_string(iteration)));
  return {};
}

}  // namespace troupe::engine::checkpoint
