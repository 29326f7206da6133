// Checkpoints of Megatron-LM in the format "torch": FOLDER/latest_checkpointed_iteration.txt and
// FOLDER/iter_0000001/mp_rank_TT[_PPP]/model_optim_rng.pt.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/error.h"
#include "engine/checkpoint/megatron/layout.h"
#include "engine/checkpoint/megatron/weight_source.h"
#include "engine/checkpoint/pickle/torch_file.h"
#include "engine/models/spec.h"

namespace troupe::engine::checkpoint {

inline constexpr std::string_view tracker_file = "latest_checkpointed_iteration.txt",
                                  rank_file = "model_optim_rng.pt";

/// "mp_rank_01", or "mp_rank_01_002" where there are several pipeline ranks.
std::string rank_folder(int tensor_rank, int pipeline_rank, int pipeline_ranks);

/// The weights of an open checkpoint.
class MegatronFolder : public WeightSource {
 public:
  /// Opens the files of all ranks and compares every tensor's name and shape with those that `spec`
  /// asks for. `where` names the file of `spec`. Errc::not_found, io, corrupt; Errc::unsupported
  /// for sharded formats (torch_dist, zarr) and expert-parallel ranks, and errors of
  /// check_megatron.
  static Result<MegatronFolder> open(const std::string& folder, const models::DecoderSpec& spec,
                                     const std::string& where);

  const MegatronGrid& grid() const { return grid_; }
  /// Classes in the files that became records, such as argparse.Namespace.
  std::vector<std::string> foreign() const;
  Result<StoredType> type(const std::string& parameter) const override;
  Result<std::span<const std::byte>> read(const std::string& parameter,
                                          std::vector<std::byte>& buffer) const override;

 private:
  struct Shard {
    std::size_t file;
    const PickledTensor* stored;
    ShardTensor plan;
  };
  /// Tensors of a part of a file by their path, with "/" between dicts.
  using Named = std::map<std::string, const PickledTensor*>;

  MegatronFolder() = default;
  Result<> open_files(const std::string& folder);
  Result<Named> named(const TorchFile& file, int virtual_rank) const;
  Result<> read_grid(const models::DecoderSpec& spec);
  Result<> add_shards(const models::DecoderSpec& spec, int tensor, int pipeline, int part);
  const TorchFile& file(int tensor, int pipeline) const {
    return files_[static_cast<std::size_t>(pipeline * grid_.tensor + tensor)];
  }

  std::int64_t next_layer_ = 0;  ///< while the grid is read
  std::string folder_;           ///< of the iteration
  MegatronGrid grid_;
  std::vector<TorchFile> files_;  ///< [pipeline * tensor ranks + tensor]
  std::vector<Shard> shards_;
  std::unordered_map<std::string, std::vector<std::size_t>> places_;  ///< of parameters, in shards_
};

}  // namespace troupe::engine::checkpoint
