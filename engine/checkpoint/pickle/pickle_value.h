// PickleValue: what TorchWriter writes as a pickle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/checkpoint/stored_type.h"

namespace troupe::engine::checkpoint {

/// A tensor whose bytes are written after the pickle.
struct TensorSlot {
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> content = {};  ///< written by TorchWriter itself; empty: by its caller

  /// A number: an f64 tensor without axes.
  static TensorSlot number(double value);

  std::int64_t count() const;
  std::uint64_t bytes() const;
};

class PickleValue;

struct PickleTuple {
  std::vector<PickleValue> items;
};
/// A dict, or a collections.OrderedDict as torch's state_dict() returns.
struct PickleDict {
  std::vector<std::pair<PickleValue, PickleValue>> items;
  bool ordered = false;
};

class PickleValue {
 public:
  using List = std::vector<PickleValue>;
  using Tuple = PickleTuple;
  using Dict = PickleDict;
  using Value =
      std::variant<std::monostate, bool, std::int64_t, std::string, List, Tuple, Dict, TensorSlot>;

  PickleValue() = default;
  PickleValue(bool value) : value_(value) {}
  PickleValue(int value) : value_(std::int64_t{value}) {}
  PickleValue(std::int64_t value) : value_(value) {}
  PickleValue(const char* text) : value_(std::string(text)) {}
  PickleValue(std::string text) : value_(std::move(text)) {}
  PickleValue(List items) : value_(std::move(items)) {}
  PickleValue(Tuple items) : value_(std::move(items)) {}
  PickleValue(Dict items) : value_(std::move(items)) {}
  PickleValue(TensorSlot slot) : value_(std::move(slot)) {}

  const Value& value() const { return value_; }
  Dict* dict() { return std::get_if<Dict>(&value_); }  ///< nullptr for other values

 private:
  Value value_;
};

/// The pickle of `root`, protocol 2, and its tensors in the order of their storages "0", "1", ...
/// Every tensor has a type that torch has a storage class for (a Bug otherwise).
struct WrittenPickle {
  std::string bytes;
  std::vector<TensorSlot> tensors;
};
WrittenPickle write_pickle(const PickleValue& root);

}  // namespace troupe::engine::checkpoint
