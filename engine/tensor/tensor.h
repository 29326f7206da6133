// Tensor: a shaped handle on memory that a Device owns. Copying a Tensor copies the handle, not the
// values. Nobody outside engine/ops dereferences one: values enter by Device::upload and leave by
// Device::download (to_host).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

namespace troupe {

/// Element type. The layout of packed types is private to the device: ops::Device::pack writes it,
/// and only the GEMMs of that device read it.
enum class DType : std::uint8_t { f32, bf16, i32, bf16_packed, int8_packed };

constexpr std::size_t bytes_of(DType type) {
  if (type == DType::int8_packed) return 1;
  return type == DType::bf16 || type == DType::bf16_packed ? 2 : 4;
}
const char* to_string(DType type);

/// Up to four axes, row-major. Shape{} is a scalar (one element).
class Shape {
 public:
  static constexpr int max_rank = 4;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes);
  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  /// The number of elements.
  std::int64_t count() const;
  /// Elements of one slice along the first axis: count() / (*this)[0].
  std::int64_t stride() const;
  std::string text() const;  ///< "[12, 64]"
  bool operator==(const Shape&) const = default;

 private:
  int rank_ = 0;
  std::array<std::int64_t, max_rank> sizes_{};
};

/// A block of a device's memory. Devices derive from it.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {}
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::size_t bytes() const { return bytes_; }
  /// Where the host reads and writes the block; nullptr: in no memory of the host.
  virtual std::byte* host_pointer() const { return nullptr; }

 private:
  std::size_t bytes_;
};

class Tensor {
 public:
  Tensor() = default;  ///< no memory: "absent"
  Tensor(std::shared_ptr<Buffer> buffer, std::size_t offset_bytes, Shape shape, DType type);

  explicit operator bool() const { return buffer_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return type_; }
  std::int64_t count() const { return shape_.count(); }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * bytes_of(type_); }

  /// View of the same memory with another shape of equal count.
  Tensor view(Shape shape) const;
  /// Rows [begin, end) of the first axis, without a copy.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  /// Elements [begin, end) of the flattened tensor, as a vector, without a copy.
  Tensor flat(std::int64_t begin, std::int64_t end) const;

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  std::size_t offset_bytes() const { return offset_; }

 private:
  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_ = 0;
  Shape shape_;
  DType type_ = DType::f32;
};

}  // namespace troupe
