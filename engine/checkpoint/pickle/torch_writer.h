// TorchWriter: writes files that torch.load(weights_only=True) opens, tensor by tensor. Equal
// values give equal bytes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/pickle/pickle_value.h"
#include "engine/checkpoint/pickle/zip_writer.h"

namespace troupe::engine::checkpoint {

class TorchWriter {
 public:
  /// Creates the file and writes the pickle of `root`. Errc::io.
  static Result<TorchWriter> create(const std::string& path, const PickleValue& root);

  /// The tensors, in the order in which they must be written, but for those with a content.
  const std::vector<TensorSlot>& tensors() const { return tensors_; }
  /// Writes the bytes of the next tensor, little-endian, row-major. Errc::io.
  Result<> write(std::span<const std::byte> bytes);
  /// Makes the file durable; every tensor must have been written. Without this call the file is
  /// removed.
  Result<> finish();

 private:
  TorchWriter(ZipWriter zip, std::vector<TensorSlot> tensors)
      : zip_(std::move(zip)), tensors_(std::move(tensors)) {}

  Result<> write_contents();

  ZipWriter zip_;
  std::vector<TensorSlot> tensors_;
  std::size_t written_ = 0;
};

}  // namespace troupe::engine::checkpoint
