// PickleGraph: what a Python pickle describes, as data. Nothing is executed: a class that is not
// known here becomes a record with its name, arguments and state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/stored_type.h"

namespace troupe::engine::checkpoint {

/// Index of a node. Nodes may share others and form cycles: who follows them keeps count.
using PickleId = std::uint32_t;

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  bytes,  ///< bytes, and integers of more than eight bytes
  list,   ///< lists and sets
  tuple,
  dict,     ///< dict and OrderedDict: key, value, key, value, ...
  global,   ///< a class or function: its full name in `text`
  record,   ///< an object of a foreign class: class, arguments, then its states and items
  storage,  ///< of a tensor: its key in `text`, its number of elements, its type
  tensor,   ///< `number` indexes PickleGraph::tensors
};
/// "None", "bool", "int", ...: Python's name of the kind, for messages.
std::string_view to_string(PickleKind kind);

struct PickleNode {
  PickleKind kind = PickleKind::none;
  StoredType type = StoredType::f32;  ///< of a storage
  std::uint16_t depth = 0;            ///< levels of nodes below, as far as known when it was made
  std::int64_t number = 0;            ///< value of a boolean or an integer
  double real = 0;
  std::string text;
  std::vector<PickleId> items;
};

/// A view of a storage: element i, j, ... is storage[offset + i * strides[0] + j * strides[1] ...].
struct PickledTensor {
  std::string key;  ///< of the storage
  StoredType type = StoredType::f32;
  std::int64_t storage_count = 0, offset = 0;
  std::vector<std::int64_t> shape, strides;  ///< in elements

  std::int64_t count() const;  ///< cannot overflow
  bool contiguous() const;     ///< row-major without gaps
};

struct PickleLimits {
  std::size_t bytes = 64u << 20;  ///< of the pickle
  std::size_t nodes = 2u << 20;
  std::size_t foreign = 1000;  ///< distinct names of foreign classes
  std::uint16_t depth = 200;
  std::size_t axes = 8;
};

struct PickleGraph {
  std::vector<PickleNode> nodes;
  std::vector<PickledTensor> tensors;
  std::set<std::string> foreign;  ///< names of the classes that became records
  PickleId root = 0;

  const PickleNode& at(PickleId id) const { return nodes[id]; }
  /// The value of a text key of a dict, or nullptr. Linear.
  const PickleNode* find(const PickleNode& dict, std::string_view key) const;
};

/// Reads a pickle of protocol 2 to 5. `where` starts every message. Errc::corrupt;
/// Errc::unsupported for what torch.save does not write (opcodes of protocols 0 and 1, the
/// extension registry, out-of-band buffers) and beyond the limits.
Result<PickleGraph> read_pickle(std::span<const std::byte> pickle, const std::string& where,
                                const PickleLimits& limits = {});

}  // namespace troupe::engine::checkpoint
