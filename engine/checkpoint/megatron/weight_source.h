// WeightSource: the parameters of a model, one at a time, under the names of Llama's Hugging Face
// checkpoints, as stored bytes. The rows of a head have the order of the family's files, which
// Megatron's checkpoints keep.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/megatron/layout.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/stored_type.h"
#include "engine/models/storage.h"

namespace troupe::engine::checkpoint {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// The element type of a parameter. Errc::corrupt when there is none of that name.
  virtual Result<StoredType> type(const std::string& parameter) const = 0;
  /// The bytes of a parameter, row-major: a view of a file, or of `buffer`.
  virtual Result<std::span<const std::byte>> read(const std::string& parameter,
                                                  std::vector<std::byte>& buffer) const = 0;
};

/// The weights of a Hugging Face folder, whose files may join parameters (models/storage.h). The
/// folder outlives this object.
class SafetensorsSource : public WeightSource {
 public:
  SafetensorsSource(const SafetensorsFolder& folder, const models::DecoderSpec& spec);
  /// Errc::corrupt for a tensor that is missing or has another shape, and for those that are no
  /// weight, but for what is computed again (rotary_emb.inv_freq). `where` names the file of spec.
  Result<> check(const std::string& where) const;
  Result<StoredType> type(const std::string& parameter) const override;
  Result<std::span<const std::byte>> read(const std::string& parameter,
                                          std::vector<std::byte>& buffer) const override;

 private:
  Result<SafetensorsFolder::Location> locate(const models::StoredTensor& tensor) const;
  Result<const models::StoredTensor*> holder(const std::string& parameter) const;

  const SafetensorsFolder& folder_;
  std::vector<models::StoredTensor> stored_;
  std::unordered_map<std::string, std::size_t> places_;  ///< of parameters, in stored_
};

/// The element type of a tensor of a family's files. Errc::unsupported where the parameters that it
/// joins have different ones.
Result<StoredType> type_of_joined(const models::StoredTensor& tensor, const WeightSource& source);
/// Its bytes: a view of a file, or of `buffer`.
Result<std::span<const std::byte>> read_joined(const models::StoredTensor& tensor,
                                               const WeightSource& source,
                                               std::vector<std::byte>& buffer);

/// The bytes of a rank's tensor, from the parameters that it has parts of, whose elements have
/// `bytes` bytes each.
Result<std::vector<std::byte>> gather_shard(const ShardTensor& tensor, const WeightSource& source,
                                            std::size_t bytes);

/// Copies the rows of `parameter` that a rank's tensor has from its bytes to `into`, the whole
/// parameter.
void scatter_shard(const ShardTensor& tensor, std::span<const std::byte> from,
                   const std::string& parameter, std::size_t bytes, std::span<std::byte> into);

/// `bytes` of the type `from` as `to`: unchanged, or rounded to nearest between F32, BF16 and F16.
/// Errc::unsupported for other types; Errc::usage for a value that F16 would turn into infinity.
Result<> convert_type(std::vector<std::byte>& bytes, StoredType from, StoredType to,
                      const std::string& name);

}  // namespace troupe::engine::checkpoint
