// Checkpoints of Megatron-LM in the format "torch": FOLDER/latest_checkpointed_iteration.txt and
// FOLDER/iter_0000001/mp_rank_TT[_PPP]/model_optim_rng.pt.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/megatron/distributed_optimizer.h"
#include "engine/checkpoint/megatron/layout.h"
#include "engine/checkpoint/megatron/megatron_adapter.h"
#include "engine/checkpoint/megatron/megatron_optimizer.h"
#include "engine/checkpoint/megatron/weight_source.h"
#include "engine/checkpoint/pickle/torch_file.h"
#include "engine/models/spec.h"

namespace troupe::engine::checkpoint {

inline constexpr std::string_view tracker_file = "latest_checkpointed_iteration.txt",
                                  rank_file = "model_optim_rng.pt";

/// "iter_0000001".
std::string iteration_name(std::int64_t iteration);
/// "mp_rank_01", or "mp_rank_01_002" where there are several pipeline ranks.
std::string rank_folder(int tensor_rank, int pipeline_rank, int pipeline_ranks);

class MegatronFolder;

/// One kind of tensors of an optimizer, by the parameters' names. The folder outlives this object.
class OptimizerTensors : public WeightSource {
 public:
  OptimizerTensors(const MegatronFolder& folder, OptimizerTensor kind)
      : folder_(folder), kind_(kind) {}
  Result<StoredType> type(const std::string& parameter) const override;
  Result<std::span<const std::byte>> read(const std::string& parameter,
                                          std::vector<std::byte>& buffer) const override;

 private:
  const MegatronFolder& folder_;
  OptimizerTensor kind_;
};

/// The weights of an open checkpoint.
class MegatronFolder : public WeightSource {
 public:
  /// Opens the files of all ranks and compares every tensor's name and shape with those that `spec`
  /// asks for. `where` names the file of `spec`. Errc::not_found, io, corrupt; Errc::unsupported
  /// for sharded formats (torch_dist, zarr) and expert-parallel ranks, and errors of
  /// check_megatron.
  static Result<MegatronFolder> open(const std::string& folder, const models::DecoderSpec& spec,
                                     const std::string& where);

  /// Opens the files of all ranks of a checkpoint that may have adapters only.
  static Result<MegatronFolder> open_adapter(const std::string& folder);
  /// The adapters of a rank's part, by the names of their weights.
  Result<std::map<std::string, LoraPair>> adapters_of(int tensor, int pipeline, int part) const;

  /// Adds a LoRA adapter of the same division to the weights that it has. Errors of open() and of
  /// check_lora_pair(); Errc::usage without alpha or for another division.
  Result<> add_adapter(const AdapterSettings& settings);

  /// Reads the optimizer's state; false: the checkpoint has none. Errors of read_optimizer() and
  /// distributed_parts(); Errc::unsupported where the file of the distributed optimizer is missing.
  Result<bool> read_optimizer_state();
  const OptimizerEntries& optimizer_entries() const { return optimizer_; }
  /// Whether the optimizer has f32 weights of its own.
  bool has_masters() const { return shards_.front().optimizer.back() != nullptr; }
  /// The iteration that the files name, or 1.
  std::int64_t iteration() const;

  const MegatronGrid& grid() const { return grid_; }
  /// The files of all ranks, and of an adapter.
  std::vector<std::string> paths() const;
  /// Classes in the files that became records, such as argparse.Namespace.
  std::vector<std::string> foreign() const;
  Result<StoredType> type(const std::string& parameter) const override;
  Result<std::span<const std::byte>> read(const std::string& parameter,
                                          std::vector<std::byte>& buffer) const override;

 private:
  friend class OptimizerTensors;
  struct Shard {
    std::size_t file;
    const PickledTensor* stored;
    ShardTensor plan;
    int part = 0;        ///< virtual rank
    LoraPair lora = {};  ///< added to the weight, where it has a file
    OptimizerPart optimizer = {};
  };
  /// Tensors of a part of a file by their path, with "/" between dicts.
  using Named = std::map<std::string, const PickledTensor*>;

  MegatronFolder() = default;
  static Result<Named> named(const TorchFile& file, int virtual_rank);
  Result<> open_files(const std::string& folder);
  /// `kind`: of the optimizer; none: the weight.
  using Kind = std::optional<OptimizerTensor>;
  static const PickledTensor* stored(const Shard& shard, Kind kind) {
    return kind ? shard.optimizer[static_cast<std::size_t>(*kind)] : shard.stored;
  }
  Result<StoredType> type_of(const std::string& parameter, Kind kind) const;
  Result<std::span<const std::byte>> read_of(const std::string& parameter, Kind kind,
                                             std::vector<std::byte>& buffer) const;
  Result<std::span<const std::byte>> shard_bytes(const Shard& shard, Kind kind,
                                                 std::vector<std::byte>& buffer) const;
  Result<> read_grid(const models::DecoderSpec& spec);
  Result<> add_shards(const models::DecoderSpec& spec, int tensor, int pipeline, int part);
  /// The state of the shards from `first`, `count` of them, which are those of a file.
  Result<> read_distributed(std::size_t file, std::size_t first, std::size_t count);
  const TorchFile& file(int tensor, int pipeline) const {
    return files_[static_cast<std::size_t>(pipeline * grid_.tensor + tensor)];
  }

  std::int64_t next_layer_ = 0;  ///< while the grid is read
  std::string folder_;           ///< of the iteration
  MegatronGrid grid_;
  std::vector<TorchFile> files_;     ///< [pipeline * tensor ranks + tensor]
  std::vector<TorchFile> adapters_;  ///< the same of an adapter, or empty
  std::vector<TorchFile> states_;    ///< the same of the distributed optimizer, or empty
  std::vector<std::vector<DistributedPart>> distributed_;  ///< by file, then by its shards
  double alpha_ = 0;                                       ///< of the adapter
  OptimizerEntries optimizer_;
  std::vector<Shard> shards_;
  std::unordered_map<std::string, std::vector<std::size_t>> places_;  ///< of parameters, in shards_
};

}  // namespace troupe::engine::checkpoint
