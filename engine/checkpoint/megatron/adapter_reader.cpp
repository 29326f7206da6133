#include "engine/checkpoint/megatron/adapter_reader.h"

#include <algorithm>
#include <set>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/megatron/megatron_folder.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::string_view ending = ".weight", before_layer = "decoder.layers.";

std::optional<std::int64_t> adapted_layer(std::string_view name) {
  if (!name.starts_with(before_layer)) return std::nullopt;
  name.remove_prefix(before_layer.size());
  const auto layer = parse_number<std::int64_t>(name.substr(0, name.find('.')));
  return layer && *layer >= 0 && *layer < 10000 ? std::optional(*layer) : std::nullopt;
}

/// Adapters of all files, and the division that their names show.
class AdapterReader {
 public:
  AdapterReader(const models::DecoderSpec& spec, const AdapterSettings& settings)
      : spec_(spec), settings_(settings) {}

  Result<JoinedAdapter> read() {
    if (!(settings_.alpha > 0))
      return fail(Errc::usage, "--lora-load: expected --lora-alpha, a number above 0");
    auto folder = MegatronFolder::open_adapter(settings_.folder);
    RETURN_IF_ERROR(folder);
    grid_ = folder->grid();
    grid_.vocabulary = spec_.vocabulary;
    RETURN_IF_ERROR(read_layers(*folder));
    RETURN_IF_ERROR(check_megatron(spec_, grid_, settings_.folder));
    for (int pipeline = 0; pipeline < grid_.pipeline(); ++pipeline)
      for (int tensor = 0; tensor < grid_.tensor; ++tensor)
        for (int part = 0; part < grid_.virtual_ranks(); ++part)
          RETURN_IF_ERROR(add_rank(*folder, tensor, pipeline, part));
    if (out_.modules.empty())
      return fail(Errc::usage, cat(settings_.folder, ": no tensor lora_A or lora_B"));
    out_.alpha = settings_.alpha;
    return std::move(out_);
  }

 private:
  Result<> read_layers(const MegatronFolder& folder) {
    std::int64_t next = 0;
    for (int part = 0;; ++part) {
      bool found = false;
      for (auto& stage : grid_.layers) {
        const auto pairs =
            folder.adapters_of(0, static_cast<int>(&stage - grid_.layers.data()), part);
        RETURN_IF_ERROR(pairs);
        std::set<std::int64_t> present;
        for (const auto& [name, pair] : *pairs)
          if (const auto layer = adapted_layer(name)) present.insert(*layer);
        found = found || !present.empty();
        auto& layers = stage.emplace_back();
        if (!present.empty())
          layers.assign(static_cast<std::size_t>(*present.rbegin()) + 1, empty_layer);
        for (const auto local : present) layers[static_cast<std::size_t>(local)] = next++;
      }
      if (found) continue;
      for (auto& stage : grid_.layers)
        if (stage.size() > 1) stage.pop_back();
      return {};
    }
  }

  Result<> add_rank(const MegatronFolder& folder, int tensor, int pipeline, int part) {
    auto pairs = folder.adapters_of(tensor, pipeline, part);
    RETURN_IF_ERROR(pairs);
    for (const ShardTensor& plan : shard_tensors(spec_, grid_, tensor, pipeline, part)) {
      const auto found = pairs->find(plan.name);
      if (found == pairs->end()) continue;
      RETURN_IF_ERROR(check_lora_pair(found->second, plan, settings_));
      RETURN_IF_ERROR(add(plan, found->second));
      pairs->erase(found);
    }
    if (pairs->empty()) return {};
    return fail(Errc::usage, cat(settings_.folder, ": an adapter of ", quote(pairs->begin()->first),
                                 ", which the model does not have"));
  }

  /// Adds the rows and columns that a rank has of each module of a tensor.
  Result<> add(const ShardTensor& plan, const LoraPair& pair) {
    const auto a = floats_of(*pair.file, *pair.a, plan.name),
               b = floats_of(*pair.file, *pair.b, plan.name);
    RETURN_IF_ERROR(a);
    RETURN_IF_ERROR(b);
    const std::int64_t stored = pair.a->shape[0], rank = stored / pair.copies;
    if (out_.rank != 0 && out_.rank != rank)
      return fail(Errc::unsupported, cat(pair.file->path(), ": adapters of the ranks ", out_.rank,
                                         " and ", rank, "; expected one rank"));
    out_.rank = rank;
    std::vector<std::string> modules;
    std::int64_t row = 0;
    for (const RowBlock& block : plan.blocks) {
      const std::string module = block.parameter.substr(0, block.parameter.size() - ending.size());
      auto at = std::ranges::find(modules, module);
      if (at == modules.end()) at = modules.insert(at, module);
      const std::int64_t first = pair.copies > 1 ? (at - modules.begin()) * rank : 0;
      AdapterModule& into = out_.modules[module];
      into.a.resize(static_cast<std::size_t>(rank * plan.all_columns));
      into.b.resize(
          std::max(into.b.size(), static_cast<std::size_t>((block.first + block.count) * rank)));
      for (std::int64_t r = 0; r < rank; ++r)
        std::copy_n(a->begin() + (first + r) * plan.columns, plan.columns,
                    into.a.begin() + r * plan.all_columns + plan.first_column);
      for (std::int64_t i = 0; i < block.count; ++i, ++row)
        for (std::int64_t r = 0; r < rank; ++r)
          into.b[static_cast<std::size_t>((block.first + i) * rank + r)] =
              (*b)[static_cast<std::size_t>(row * stored + first + r)] /
              static_cast<float>(pair.copies);
    }
    return {};
  }

  const models::DecoderSpec& spec_;
  const AdapterSettings& settings_;
  MegatronGrid grid_;
  JoinedAdapter out_;
};

}  // namespace

Result<JoinedAdapter> read_megatron_adapter(const models::DecoderSpec& spec,
                                            const AdapterSettings& settings) {
  return AdapterReader(spec, settings).read();
}

}  // namespace troupe::engine::checkpoint
