// TensorParts: the tensors of a model and of its optimizer, of which each rank of a group holds a
// part. The ranks write a file together, each its own part of every tensor to its place, so that no
// rank gathers a tensor and the file does not depend on the grid.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/checkpoint/part_writer.h"
#include "engine/checkpoint/safetensors_layout.h"
#include "engine/checkpoint/stored_type.h"
#include "engine/models/storage.h"
#include "engine/nn/arena_shards.h"
#include "engine/nn/parameters.h"
#include "engine/parallel/grid.h"

namespace troupe::engine::checkpoint {

/// A tensor of a file: its name and layout there, and the number of the arena with its values.
struct TensorSource {
  models::StoredTensor layout;
  std::size_t arena = 0;
};

class TensorParts {
 public:
  /// Of one rank that has everything. `arenas`: [parameters.count()] each. The arguments of both
  /// constructors outlive this.
  TensorParts(const nn::Parameters& parameters, std::vector<Tensor> arenas);

  /// What a rank of a group has.
  struct OfRank {
    const nn::Parameters& parameters;
    std::vector<Tensor> arenas;  ///< [parameters.count()] each, equal in all replicas
    /// [shards->count()] each, divided over the replicas. Their numbers follow those of `arenas`.
    std::vector<Tensor> divided = {};
    const nn::ArenaShards* shards = nullptr;
    const nn::Parameters* whole = nullptr;  ///< of all pipeline stages; nullptr: `parameters`
  };
  /// Collective over the group of `mesh`, as are the methods below: every rank calls them with the
  /// same arguments, and every rank gets the same result.
  TensorParts(OfRank own, const parallel::Mesh& mesh);

  /// The parameters of the whole model.
  const nn::Parameters& parameters() const { return *whole_; }
  bool is_root() const { return mesh_ == nullptr || mesh_->is_root(); }

  /// Writes a new file with these tensors, durably. Errc::io; usage for a value that F16 would turn
  /// into infinity.
  Result<> write(const std::string& path, StoredType type,
                 const std::vector<TensorSource>& tensors);
  /// The error of the first rank that has one. Waits for the slowest disk, so there is no timeout.
  Result<> agree(Result<> mine, std::string_view what);
  /// The text of rank 0.
  std::string share(std::string text, std::string_view what);

 private:
  Result<std::int64_t> sum(Result<std::int64_t> mine, std::string_view what);
  void find_written();
  void skip_earlier_ranks();
  void skip_earlier_stages();
  std::optional<OwnBlock> block(std::size_t arena, const std::string& parameter) const;
  /// Returns the number of bytes that this rank wrote.
  Result<std::int64_t> write_own(OutputFile& file, const SafetensorsLayout& layout,
                                 const std::vector<TensorSource>& tensors) const;

  const nn::Parameters* own_;
  const nn::Parameters* whole_;
  std::vector<Tensor> arenas_;
  std::size_t undivided_;  ///< number of arenas that are whole in every replica
  const nn::ArenaShards* shards_ = nullptr;
  const parallel::Mesh* mesh_ = nullptr;
  std::vector<std::int64_t> starts_;  ///< offset of each own parameter in an arena
  /// What this rank writes of each own parameter: the range along the axis of its shard that no
  /// lower rank has; of one without an axis all. Absent: nothing.
  std::vector<std::optional<parallel::Range>> written_;
};

}  // namespace troupe::engine::checkpoint
