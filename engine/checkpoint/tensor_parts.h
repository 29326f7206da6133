// TensorParts: the tensors of a model and of its optimizer, of which each rank of a group holds a
// part. The ranks write a file together, each its own part of every tensor to its place, so that no
// rank gathers a tensor and the file does not depend on the grid.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
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

  /// Writes a new file with these tensors, durably. After defer_values() only its header: the
  /// values follow with write_values(). Errc::io; usage for a value that F16 would turn into
  /// infinity.
  Result<> write(const std::string& path, StoredType type,
                 const std::vector<TensorSource>& tensors);
  void defer_values() { deferred_ = true; }
  /// Receives the end of the values of the arenas that are written and no longer needed; returns
  /// whether to go on.
  using Progress = std::function<bool(std::int64_t end)>;
  /// Writes this rank's values into the files whose headers are written, in the order of the arena
  /// rather than of the files, and makes them durable (`before_sync` is called in between). Not
  /// collective: it needs no other rank, and another thread may call it. Errc::cancelled when
  /// `progress` says so.
  Result<> write_values(const Progress& progress, const std::function<Result<>()>& before_sync);
  /// Ends these files: the ranks exchange the results of their write_values().
  Result<> complete(Result<> mine);
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
  /// A file whose header is written.
  struct Started {
    OutputFile file;
    SafetensorsLayout layout;
    std::vector<TensorSource> tensors;
    std::int64_t written = 0;  ///< bytes, by this rank
  };
  /// A tensor of a file of which this rank has a part, and the values of its arena within which
  /// that lies.
  struct Job {
    Started* of;
    const StoredTensor* place;
    const TensorSource* source;
    std::int64_t begin, end;
  };
  Result<> start(const std::string& path, StoredType type,
                 const std::vector<TensorSource>& tensors);
  std::vector<Job> jobs();

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
  bool deferred_ = false;
  std::vector<Started> started_;
};

}  // namespace troupe::engine::checkpoint
