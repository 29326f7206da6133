// SafetensorsWriter: writes safetensors files tensor by tensor, as safetensors_layout.h lays them
// out. Equal tensors give equal bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/output_file.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/safetensors_layout.h"

namespace troupe::engine::checkpoint {

class SafetensorsWriter {
 public:
  using Metadata = SafetensorsMetadata;
  using Plan = TensorPlan;

  /// Creates the file and writes its header. Names must differ (a Bug otherwise). Errc::io.
  static Result<SafetensorsWriter> create(const std::string& path, const std::vector<Plan>& plans,
                                          const Metadata& metadata = {{"format", "pt"}});

  /// The tensors, in the order in which they must be written.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// Writes the next tensor's values, [count], rounded to nearest even for BF16 and F16. Errc::io.
  Result<> write(std::string_view name, std::span<const float> values);
  /// Writes the next tensor's bytes unchanged.
  Result<> write_bytes(std::string_view name, std::span<const std::byte> bytes);
  /// Makes the file durable and closes it; every tensor must have been written. Without this call
  /// the file is removed.
  Result<> finish();

 private:
  SafetensorsWriter(OutputFile file, std::vector<StoredTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}
  const StoredTensor& next(std::string_view name);

  OutputFile file_;
  std::vector<StoredTensor> tensors_;
  std::size_t written_ = 0;
};

}  // namespace troupe::engine::checkpoint
