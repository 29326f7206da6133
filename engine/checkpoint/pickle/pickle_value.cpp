#include "engine/checkpoint/pickle/pickle_value.h"

#include <cstring>
#include <limits>
#include <string_view>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/pickle/little_endian.h"
#include "engine/checkpoint/pickle/opcodes.h"

namespace troupe::engine::checkpoint {
namespace {

std::string_view storage_class(StoredType type) {
  switch (type) {
    case StoredType::f32:
      return "FloatStorage";
    case StoredType::f64:
      return "DoubleStorage";
    case StoredType::f16:
      return "HalfStorage";
    case StoredType::bf16:
      return "BFloat16Storage";
    case StoredType::i64:
      return "LongStorage";
    case StoredType::i32:
      return "IntStorage";
    case StoredType::i16:
      return "ShortStorage";
    case StoredType::i8:
      return "CharStorage";
    case StoredType::u8:
      return "ByteStorage";
    case StoredType::boolean:
      return "BoolStorage";
    default:
      check(false, "write_pickle: torch has no storage of this type");
      return "";
  }
}

class Pickler {
 public:
  WrittenPickle run(const PickleValue& root) {
    opcode(op::proto);
    opcode(2);
    write(root);
    opcode(op::stop);
    return std::move(out_);
  }

 private:
  void opcode(std::uint8_t code) { out_.bytes.push_back(static_cast<char>(code)); }
  void global(std::string_view module, std::string_view name) {
    opcode(op::global);
    out_.bytes.append(module).append("\n").append(name).append("\n");
  }
  void integer(std::int64_t value) {
    if (value >= std::numeric_limits<std::int32_t>::min() &&
        value <= std::numeric_limits<std::int32_t>::max()) {
      opcode(op::bin_int);
      append_integer(out_.bytes, static_cast<std::int32_t>(value));
      return;
    }
    opcode(op::long1);
    opcode(8);
    append_integer(out_.bytes, value);
  }
  void text(const std::string& value) {
    opcode(op::bin_unicode);
    append_integer(out_.bytes, static_cast<std::uint32_t>(value.size()));
    out_.bytes += value;
  }
  void axes(const std::vector<std::int64_t>& values) {
    opcode(op::mark);
    for (const auto value : values) integer(value);
    opcode(op::tuple);
  }
  // An empty dict of hooks is the sixth argument of _rebuild_tensor_v2.
  void ordered_dict() {
    global("collections", "OrderedDict");
    opcode(op::empty_tuple);
    opcode(op::reduce);
  }

  void write(const PickleValue& value) {
    std::visit([this](const auto& held) { this->write_one(held); }, value.value());
  }
  void write_one(std::monostate) { opcode(op::none); }
  void write_one(bool value) { opcode(value ? op::new_true : op::new_false); }
  void write_one(std::int64_t value) { integer(value); }
  void write_one(const std::string& value) { text(value); }
  void write_one(const PickleValue::List& list) {
    opcode(op::empty_list);
    opcode(op::mark);
    for (const auto& item : list) write(item);
    opcode(op::appends);
  }
  void write_one(const PickleValue::Tuple& tuple) {
    opcode(op::mark);
    for (const auto& item : tuple.items) write(item);
    opcode(op::tuple);
  }
  void write_one(const PickleValue::Dict& dict) {
    if (dict.ordered)
      ordered_dict();
    else
      opcode(op::empty_dict);
    opcode(op::mark);
    for (const auto& [key, value] : dict.items) {
      write(key);
      write(value);
    }
    opcode(op::set_items);
  }
  void write_one(const TensorSlot& slot) {
    global("torch._utils", "_rebuild_tensor_v2");
    opcode(op::mark);
    opcode(op::mark);
    text("storage");
    global("torch", storage_class(slot.type));
    text(std::to_string(out_.tensors.size()));
    text("cpu");
    integer(slot.count());
    opcode(op::tuple);
    opcode(op::bin_pers_id);
    integer(0);
    axes(slot.shape);
    std::vector<std::int64_t> strides(slot.shape.size(), 1);
    for (std::size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * slot.shape[i];
    axes(strides);
    opcode(op::new_false);  // requires_grad
    ordered_dict();
    opcode(op::tuple);
    opcode(op::reduce);
    out_.tensors.push_back(slot);
  }

  WrittenPickle out_;
};

}  // namespace

TensorSlot TensorSlot::number(double value) {
  TensorSlot out{StoredType::f64, {}, std::vector<std::byte>(sizeof value)};
  std::memcpy(out.content.data(), &value, sizeof value);
  return out;
}

std::int64_t TensorSlot::count() const {
  std::int64_t out = 1;
  for (const auto axis : shape) out *= axis;
  return out;
}

std::uint64_t TensorSlot::bytes() const {
  return static_cast<std::uint64_t>(count()) * bits_of(type) / 8;
}

WrittenPickle write_pickle(const PickleValue& root) {
  return Pickler().run(root);
}

}  // namespace troupe::engine::checkpoint
