#include "engine/checkpoint/megatron/distributed_optimizer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "engine/base/text/text.h"
#include "engine/checkpoint/megatron/weight_source.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::array<std::string_view, 3> vector_names{"exp_avg", "exp_avg_sq", "param"};

std::int64_t count_of(const RankParameter& parameter) {
  return parameter.weight->count();
}

// Megatron core gives a table that the first and the last stage share a bucket of its own.
bool may_be_shared(const RankParameter& parameter) {
  const std::string& name = parameter.plan->name;
  return name == "embedding.word_embeddings.weight" || name == "output_layer.weight";
}

/// Places of parameters in a vector, from the last parameter to the first.
struct Places {
  std::vector<std::int64_t> begin;  ///< by parameter
  std::int64_t end = 0;
};

/// `alignment`: of a parameter's first element in its bucket. `own_buckets`: shared tables are
/// buckets of their own.
Places places_of(std::span<const RankParameter> parameters, std::int64_t alignment,
                 bool own_buckets) {
  Places out;
  out.begin.resize(parameters.size());
  std::int64_t bucket = 0;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const bool alone = own_buckets && may_be_shared(parameters[i]);
    if (alone) bucket = out.end;
    const std::int64_t inside = out.end - bucket;
    out.begin[i] = bucket + (inside + alignment - 1) / alignment * alignment;
    out.end = out.begin[i] + count_of(parameters[i]);
    if (alone) bucket = out.end;
  }
  return out;
}

class VectorsReader {
 public:
  VectorsReader(const TorchFile& state, const TorchFile& weights,
                const std::vector<RankParameter>& parameters)
      : state_(state), graph_(state.graph()), weights_(weights), parameters_(parameters) {}

  Result<std::vector<DistributedPart>> read() {
    std::vector<DistributedPart> out;
    for (std::size_t first = 0; first < parameters_.size();) {
      const int part = parameters_[first].part;
      std::size_t count = 0;
      while (first + count < parameters_.size() && parameters_[first + count].part == part) ++count;
      auto parts = part_of(part, std::span(parameters_).subspan(first, count));
      RETURN_IF_ERROR(parts);
      out.insert(out.end(), parts->begin(), parts->end());
      first += count;
    }
    return out;
  }

 private:
  using Parameters = std::span<const RankParameter>;
  struct Vectors {
    std::array<const PickledTensor*, 3> tensors{};
    std::int64_t count = 0;
  };

  tl::unexpected<Error> unknown(const std::string& what) const {
    return fail(Errc::unsupported,
                cat(state_.path(), ": the state of the distributed optimizer ", what,
                    "; only the weights of such a checkpoint can be converted (--no-save-optim "
                    "leaves the state out)"));
  }
  Result<const PickleNode*> buffer(int part) const;
  Result<Vectors> vectors(int part) const;
  Result<std::vector<DistributedPart>> part_of(int part, Parameters parameters) const;
  /// Nothing; or the name of a parameter whose weight the places do not give.
  Result<std::optional<std::string>> difference(const Vectors& from, const Places& places,
                                                Parameters parameters) const;
  PickledTensor view(const PickledTensor& vector, const RankParameter& parameter,
                     std::int64_t begin) const;

  const TorchFile& state_;
  const PickleGraph& graph_;
  const TorchFile& weights_;
  const std::vector<RankParameter>& parameters_;
};

/// The dict of a virtual rank's vectors.
Result<const PickleNode*> VectorsReader::buffer(int part) const {
  const PickleNode& root = state_.root();
  if (root.kind != PickleKind::dict) return unknown("is no dict");
  if (graph_.find(root, "shard_main_param_res"))
    return unknown("was saved with --reuse-fp32-param, which keeps halves of the f32 weights");
  for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
    const PickleNode &key = graph_.at(root.items[i]), &types = graph_.at(root.items[i + 1]);
    if (key.kind != PickleKind::integer || key.number != part) continue;
    if (types.kind != PickleKind::dict || types.items.size() != 2)
      return unknown("has buffers of several types; expected one");
    const PickleNode& out = graph_.at(types.items[1]);
    if (out.kind != PickleKind::dict)
      return unknown("has a vector for each bucket, as Megatron core before 0.7 writes it");
    return &out;
  }
  return unknown(cat("has no buffer ", part));
}

Result<VectorsReader::Vectors> VectorsReader::vectors(int part) const {
  const auto dict = buffer(part);
  RETURN_IF_ERROR(dict);
  Vectors out;
  for (std::size_t kind = 0; kind < vector_names.size(); ++kind) {
    const PickleNode* node = graph_.find(**dict, vector_names[kind]);
    if (!node || node->kind != PickleKind::tensor)
      return unknown(cat("has no tensor ", quote(vector_names[kind]), " in buffer ", part));
    const PickledTensor& tensor = state_.tensor(*node);
    if (tensor.shape.size() != 1 || tensor.type != StoredType::f32 || !tensor.contiguous() ||
        (kind > 0 && tensor.shape != out.tensors[0]->shape))
      return fail(Errc::corrupt, cat(state_.path(), ": ", vector_names[kind], " of buffer ", part,
                                     ": expected a vector of f32 as long as the others, found ",
                                     to_string(tensor.type), " ", shape_text(tensor.shape)));
    out.tensors[kind] = &tensor;
  }
  out.count = out.tensors[0]->shape[0];
  if (const PickleNode* unpadded = graph_.find(**dict, "numel_unpadded")) {
    if (unpadded->kind != PickleKind::integer || unpadded->number < 0 ||
        unpadded->number > out.count)
      return fail(Errc::corrupt, cat(state_.path(), ": numel_unpadded of buffer ", part,
                                     ": expected at most ", out.count));
    out.count = unpadded->number;
  }
  return out;
}

PickledTensor VectorsReader::view(const PickledTensor& vector, const RankParameter& parameter,
                                  std::int64_t begin) const {
  PickledTensor out = vector;
  out.offset += begin;
  out.shape = parameter.weight->shape;
  out.strides.assign(out.shape.size(), 1);
  for (std::size_t axis = out.shape.size(); axis-- > 1;)
    out.strides[axis - 1] = out.strides[axis] * out.shape[axis];
  return out;
}

Result<std::optional<std::string>> VectorsReader::difference(const Vectors& from,
                                                             const Places& places,
                                                             Parameters parameters) const {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<std::byte> buffer, weight_buffer;
    const auto master =
        state_.bytes(view(*from.tensors[2], parameters[i], places.begin[i]), buffer);
    RETURN_IF_ERROR(master);
    const auto weight = weights_.bytes(*parameters[i].weight, weight_buffer);
    RETURN_IF_ERROR(weight);
    std::vector<std::byte> rounded(master->begin(), master->end());
    const std::string& name = parameters[i].plan->name;
    const auto converted = convert_type(rounded, StoredType::f32, parameters[i].weight->type, name);
    if (!converted || !std::ranges::equal(rounded, *weight)) return std::optional(name);
  }
  return std::optional<std::string>();
}

Result<std::vector<DistributedPart>> VectorsReader::part_of(int part, Parameters parameters) const {
  constexpr std::int64_t aligned = 64;
  const auto from = vectors(part);
  RETURN_IF_ERROR(from);
  std::optional<std::string> other;
  for (const auto& [alignment, own_buckets] :
       {std::pair{aligned, false}, std::pair{aligned, true}, std::pair{std::int64_t{1}, false}}) {
    const Places places = places_of(parameters, alignment, own_buckets);
    if (places.end != from->count) continue;
    const auto differs = difference(*from, places, parameters);
    RETURN_IF_ERROR(differs);
    other = *differs;
    if (other) continue;
    std::vector<DistributedPart> out;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      auto& views = out.emplace_back();
      for (std::size_t kind = 0; kind < views.size(); ++kind)
        views[kind] = view(*from->tensors[kind], parameters[i], places.begin[i]);
    }
    return out;
  }
  if (other)
    return unknown(cat("has other f32 weights than ", quote(*other), " of ", weights_.path(),
                       " where Megatron's order of parameters puts them"));
  return unknown(cat("has ", from->count, " elements in buffer ", part,
                     ", which is no sum of the rank's parameters with Megatron's gaps"));
}

}  // namespace

Result<std::vector<DistributedPart>> distributed_parts(
    const TorchFile& state, const TorchFile& weights,
    const std::vector<RankParameter>& parameters) {
  return VectorsReader(state, weights, parameters).read();
}

}  // namespace troupe::engine::checkpoint
