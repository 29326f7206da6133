#include "engine/models/storage.h"

#include <algorithm>
#include <map>

#include "engine/base/text/text.h"
#include "engine/models/families.h"

namespace troupe::engine::models {
namespace {

constexpr std::string_view layers = "model.layers.";

/// "model.layers.3.self_attn.q_proj.weight" split into "3", "self_attn.q_proj" and ".weight".
struct Name {
  std::string number, module, kind;
  bool in_layer() const { return !number.empty(); }
};

Name split_name(const std::string& name) {
  const auto dot = name.rfind('.');
  Name out{"", name.substr(0, dot), name.substr(dot)};
  if (!name.starts_with(layers)) return out;
  const auto end = name.find('.', layers.size());
  out.number = name.substr(layers.size(), end - layers.size());
  out.module = name.substr(end + 1, dot - end - 1);
  return out;
}

bool is_rotated(const std::string& module) {
  return module == "self_attn.q_proj" || module == "self_attn.k_proj" ||
         module == "self_attn.q_norm" || module == "self_attn.k_norm";
}

class Builder {
 public:
  explicit Builder(const DecoderSpec& spec) : spec_(spec) {
    const Family* family = find_family(spec.architecture);
    if (family && family->storage) storage_ = family->storage(spec);
    DecoderSpec base = spec;
    base.lora.reset();
    for (auto& wanted : parameter_list(base)) {
      shapes_.emplace(wanted.name, wanted.shape);
      order_.push_back(std::move(wanted.name));
    }
  }

  std::vector<StoredTensor> build() {
    std::vector<StoredTensor> out;
    for (const auto& parameter : order_) {
      const Name name = split_name(parameter);
      const Fusion* fusion = name.in_layer() ? fusion_of(name.module) : nullptr;
      if (!fusion)
        out.push_back(one(parameter, name));
      else if (fusion->parts.front() == name.module)
        out.push_back(fused(*fusion, name));
    }
    return out;
  }

 private:
  const Fusion* fusion_of(const std::string& module) const {
    for (const Fusion& fusion : storage_.fusions)
      if (std::ranges::find(fusion.parts, module) != fusion.parts.end()) return &fusion;
    return nullptr;
  }

  std::string stored_name(const Name& name) const {
    std::string module = name.module;
    for (const auto& [ours, theirs] : storage_.modules) {
      if (name.in_layer() && ours == module + name.kind)
        return cat(storage_.layers, name.number, ".", theirs);
      if (ours == module) {
        module = theirs;
        break;
      }
    }
    if (module == "score" && spec_.score_bias) module = storage_.token_score;
    return name.in_layer() ? cat(storage_.layers, name.number, ".", module, name.kind)
                           : cat(module, name.kind);
  }

  StoredTensor start(std::string name, const Name& of, const Shape& shape) const {
    const bool vector = shape.rank() == 1;
    return {std::move(name),
            storage_.transposed && of.in_layer() && !vector,
            {},
            vector ? 1 : shape[1],
            vector,
            of.kind == ".e_score_correction_bias" ? storage_.stacked_bias : 0};
  }

  Rows rows(const std::string& parameter, const std::string& module, std::int64_t first,
            std::int64_t count) const {
    return {parameter, first, count,
            is_rotated(module) && spec_.head_order.size > 0 ? spec_.head_order : HeadOrder{}};
  }

  StoredTensor one(const std::string& parameter, const Name& name) const {
    const Shape& shape = shapes_.at(parameter);
    StoredTensor tensor = start(stored_name(name), name, shape);
    tensor.rows.push_back(rows(parameter, name.in_layer() ? name.module : "", 0, shape[0]));
    return tensor;
  }

  StoredTensor fused(const Fusion& fusion, const Name& name) const {
    const auto parameter = [&](const std::string& module) {
      return cat(layers, name.number, ".", module, name.kind);
    };
    StoredTensor tensor = start(cat(storage_.layers, name.number, ".", fusion.module, name.kind),
                                name, shapes_.at(parameter(fusion.parts.front())));
    tensor.stacked = fusion.stacked;
    const std::int64_t pieces = fusion.order == Fusion::Order::groups ? spec_.kv_heads : 1;
    for (std::int64_t piece = 0; piece < pieces; ++piece)
      for (const auto& part : fusion.parts) {
        const std::int64_t count = shapes_.at(parameter(part))[0] / pieces;
        tensor.rows.push_back(rows(parameter(part), part, piece * count, count));
      }
    return tensor;
  }

  const DecoderSpec& spec_;
  Storage storage_;
  std::map<std::string, Shape> shapes_;
  std::vector<std::string> order_;
};

}  // namespace

std::int64_t Rows::row(std::int64_t stored) const {
  if (order.size == 0) return first + stored;
  const std::int64_t size = order.size, half = size / 2, head = stored / size * size,
                     r = stored % size;
  const std::int64_t rotary_dim = order.rotary_dim, pairs = rotary_dim / 2;
  if (order.interleaved) return first + head + r / 2 + (r % 2) * half;
  if (r < pairs) return first + head + r;
  if (r < rotary_dim) return first + head + half + r - pairs;
  const std::int64_t rest = r - rotary_dim;
  const std::int64_t unrotated = half - pairs;  // channels without rotation fill up both halves
  return first + head + (rest < unrotated ? pairs + rest : half + pairs + rest - unrotated);
}

std::int64_t StoredTensor::row_count() const {
  std::int64_t count = 0;
  for (const Rows& block : rows) count += block.count;
  return count;
}

std::vector<std::int64_t> StoredTensor::shape() const {
  if (!axes.empty()) return axes;
  const std::int64_t count = row_count();
  std::vector<std::int64_t> sizes =
      vector ? std::vector{count}
             : (transposed ? std::vector{columns, count} : std::vector{count, columns});
  if (stacked == 0) return sizes;
  sizes[0] /= stacked;
  sizes.insert(sizes.begin(), stacked);
  return sizes;
}

bool StoredTensor::plain() const {
  return !transposed && rows.size() == 1 && rows.front().order.size == 0;
}

std::vector<StoredTensor> stored_tensors(const DecoderSpec& spec) {
  return Builder(spec).build();
}

void extract_parameter(const StoredTensor& tensor, const float* values,
                       const std::string& parameter, float* into) {
  const std::int64_t total = tensor.row_count(), columns = tensor.columns;
  std::int64_t at = 0;
  for (const Rows& block : tensor.rows) {
    for (std::int64_t i = 0; i < block.count; ++i, ++at) {
      if (block.parameter != parameter) continue;
      float* row = into + block.row(i) * columns;
      for (std::int64_t c = 0; c < columns; ++c)
        row[c] = values[tensor.transposed ? c * total + at : at * columns + c];
    }
  }
}

}  // namespace troupe::engine::models
