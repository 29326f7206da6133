#include "engine/checkpoint/pickle/pickle_graph.h"

#include <array>

#include "engine/base/text/text.h"
#include "engine/checkpoint/pickle/unpickler.h"

namespace troupe::engine::checkpoint {

std::string_view to_string(PickleKind kind) {
  static constexpr std::array<std::string_view, 13> names = {
      "None",  "bool", "int",   "float",  "str",     "bytes", "list",
      "tuple", "dict", "class", "object", "storage", "tensor"};
  return names[static_cast<std::size_t>(kind)];
}

std::int64_t PickledTensor::count() const {
  std::int64_t out = 1;
  for (const auto axis : shape) out *= axis;
  return out;
}

bool PickledTensor::contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

const PickleNode* PickleGraph::find(const PickleNode& dict, std::string_view key) const {
  for (std::size_t i = 0; dict.kind == PickleKind::dict && i + 1 < dict.items.size(); i += 2) {
    const PickleNode& name = at(dict.items[i]);
    if (name.kind == PickleKind::text && name.text == key) return &at(dict.items[i + 1]);
  }
  return nullptr;
}

Result<PickleGraph> read_pickle(std::span<const std::byte> pickle, const std::string& where,
                                const PickleLimits& limits) {
  if (pickle.size() > limits.bytes)
    return fail(Errc::unsupported, cat(where, ": a pickle of ", pickle.size(), " bytes; at most ",
                                       limits.bytes, " are read"));
  return Unpickler(pickle, where, limits).run();
}

}  // namespace troupe::engine::checkpoint
