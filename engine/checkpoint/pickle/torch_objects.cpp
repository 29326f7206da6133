#include "engine/checkpoint/pickle/torch_objects.h"

#include <optional>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors_header.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::pair<std::string_view, StoredType> storage_classes[] = {
    {"torch.FloatStorage", StoredType::f32},         {"torch.DoubleStorage", StoredType::f64},
    {"torch.HalfStorage", StoredType::f16},          {"torch.BFloat16Storage", StoredType::bf16},
    {"torch.LongStorage", StoredType::i64},          {"torch.IntStorage", StoredType::i32},
    {"torch.ShortStorage", StoredType::i16},         {"torch.CharStorage", StoredType::i8},
    {"torch.ByteStorage", StoredType::u8},           {"torch.BoolStorage", StoredType::boolean},
    {"torch.storage.UntypedStorage", StoredType::u8}};

std::optional<StoredType> type_of(std::string_view name) {
  for (const auto& [known, type] : storage_classes)
    if (known == name) return type;
  return std::nullopt;
}

Result<std::vector<std::int64_t>> axes(const PickleGraph& graph, PickleId id, std::string_view what,
                                       const PickleLimits& limits) {
  const PickleNode& tuple = graph.at(id);
  if (tuple.kind != PickleKind::tuple || tuple.items.size() > limits.axes)
    return fail(Errc::corrupt, cat("a tensor: expected ", what, ", a tuple of at most ",
                                   limits.axes, " integers"));
  std::vector<std::int64_t> out;
  for (const PickleId item : tuple.items) {
    const PickleNode& axis = graph.at(item);
    if (axis.kind != PickleKind::integer || axis.number < 0)
      return fail(Errc::corrupt, cat("a tensor: expected ", what, " of non-negative integers"));
    out.push_back(axis.number);
  }
  return out;
}

/// Whether the elements lie inside the storage and are not more than it has.
bool fits(const PickledTensor& tensor) {
  const auto count = element_count(tensor.shape, bits_of(tensor.type));
  if (!count) return false;
  if (*count == 0) return tensor.offset <= tensor.storage_count;
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return false;
  }
  return last < tensor.storage_count && *count / bits_of(tensor.type) <= tensor.storage_count;
}

}  // namespace

Result<PickleNode> torch_storage(const PickleGraph& graph, PickleId persistent_id) {
  const PickleNode& id = graph.at(persistent_id);
  const auto item = [&](std::size_t i) -> const PickleNode& { return graph.at(id.items[i]); };
  if (id.kind != PickleKind::tuple || id.items.size() < 5 || item(0).kind != PickleKind::text ||
      item(0).text != "storage" || item(1).kind != PickleKind::global ||
      item(2).kind != PickleKind::text || item(4).kind != PickleKind::integer)
    return fail(Errc::corrupt,
                "a persistent id: expected (\"storage\", class, key, location, elements)");
  const auto type = type_of(item(1).text);
  if (!type)
    return fail(Errc::unsupported, cat("a tensor of the type ", quote(item(1).text),
                                       "; expected a storage of floating-point numbers, integers "
                                       "or booleans"));
  constexpr std::int64_t limit = std::int64_t{1} << 48;
  if (item(4).number < 0 || item(4).number > limit)
    return fail(Errc::corrupt, cat("a storage of ", item(4).number, " elements"));
  PickleNode out{.kind = PickleKind::storage, .type = *type, .number = item(4).number};
  out.text = item(2).text;
  return out;
}

Result<PickledTensor> torch_tensor(const PickleGraph& graph, std::span<const PickleId> arguments,
                                   const PickleLimits& limits) {
  if (arguments.size() < 4 || graph.at(arguments[0]).kind != PickleKind::storage ||
      graph.at(arguments[1]).kind != PickleKind::integer || graph.at(arguments[1]).number < 0)
    return fail(Errc::corrupt, "a tensor: expected (storage, offset, shape, strides, ...)");
  const PickleNode& storage = graph.at(arguments[0]);
  PickledTensor out{.key = storage.text,
                    .type = storage.type,
                    .storage_count = storage.number,
                    .offset = graph.at(arguments[1]).number};
  auto shape = axes(graph, arguments[2], "a shape", limits);
  RETURN_IF_ERROR(shape);
  auto strides = axes(graph, arguments[3], "strides", limits);
  RETURN_IF_ERROR(strides);
  out.shape = std::move(*shape);
  out.strides = std::move(*strides);
  if (out.strides.size() != out.shape.size() || !fits(out))
    return fail(Errc::corrupt,
                cat("a tensor of shape ", shape_text(out.shape), " at element ", out.offset,
                    " does not fit into its storage of ", out.storage_count, " elements"));
  return out;
}

}  // namespace troupe::engine::checkpoint
