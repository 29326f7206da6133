#include "engine/tensor/tensor.h"

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe {

const char* to_string(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::bf16_packed:
      return "packed bf16";
    case DType::int8_packed:
      return "packed int8";
    case DType::i32:
      return "i32";
  }
  return "?";
}

Shape::Shape(std::initializer_list<std::int64_t> sizes) : rank_(static_cast<int>(sizes.size())) {
  check(sizes.size() <= max_rank, "Shape: more than four axes");
  std::size_t axis = 0;
  for (const auto size : sizes) {
    check(size >= 0, "Shape: a negative size");
    sizes_[axis++] = size;
  }
}

std::int64_t Shape::count() const {
  std::int64_t count = 1;
  for (int axis = 0; axis < rank_; ++axis) count *= (*this)[axis];
  return count;
}

std::int64_t Shape::stride() const {
  std::int64_t count = 1;
  for (int axis = 1; axis < rank_; ++axis) count *= (*this)[axis];
  return count;
}

std::string Shape::text() const {
  std::string out = "[";
  for (int axis = 0; axis < rank_; ++axis) out += cat(axis ? ", " : "", (*this)[axis]);
  return out + "]";
}

Tensor::Tensor(std::shared_ptr<Buffer> buffer, std::size_t offset_bytes, Shape shape, DType type)
    : buffer_(std::move(buffer)), offset_(offset_bytes), shape_(shape), type_(type) {
  check(buffer_ && offset_ + bytes() <= buffer_->bytes(), "Tensor: beyond its buffer");
}

Tensor Tensor::view(Shape shape) const {
  check(shape.count() == count(), "Tensor::view: another number of elements");
  return {buffer_, offset_, shape, type_};
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  check(shape_.rank() >= 1 && 0 <= begin && begin <= end && end <= shape_[0],
        "Tensor::rows: outside the tensor");
  const std::size_t skip = static_cast<std::size_t>(begin * shape_.stride()) * bytes_of(type_);
  const std::int64_t count = end - begin;
  switch (shape_.rank()) {
    case 1:
      return {buffer_, offset_ + skip, Shape{count}, type_};
    case 2:
      return {buffer_, offset_ + skip, Shape{count, shape_[1]}, type_};
    case 3:
      return {buffer_, offset_ + skip, Shape{count, shape_[1], shape_[2]}, type_};
    default:
      return {buffer_, offset_ + skip, Shape{count, shape_[1], shape_[2], shape_[3]}, type_};
  }
}

Tensor Tensor::flat(std::int64_t begin, std::int64_t end) const {
  check(0 <= begin && begin <= end && end <= count(), "Tensor::flat: outside the tensor");
  return {buffer_, offset_ + static_cast<std::size_t>(begin) * bytes_of(type_), Shape{end - begin},
          type_};
}

}  // namespace troupe
