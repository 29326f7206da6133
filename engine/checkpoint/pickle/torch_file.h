// Files of torch.save: a zip archive with the pickle NAME/data.pkl and the storages NAME/data/KEY.
// Reading one executes nothing (pickle_graph.h).
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/pickle/pickle_graph.h"
#include "engine/checkpoint/pickle/zip_file.h"

namespace troupe::engine::checkpoint {

class TorchFile {
 public:
  /// Errors of ZipFile::open and read_pickle. Errc::unsupported for the format of torch before 1.6
  /// and for big-endian files, and for tensors that have more bytes in all than four times the
  /// file; Errc::corrupt for a storage that is missing or has another size.
  static Result<TorchFile> open(const std::string& path);

  const std::string& path() const { return zip_.path(); }
  const PickleGraph& graph() const { return graph_; }
  const PickleNode& root() const { return graph_.at(graph_.root); }
  const PickledTensor& tensor(const PickleNode& node) const {
    return graph_.tensors[static_cast<std::size_t>(node.number)];
  }
  /// The bytes of a tensor, little-endian, row-major: a view of the file, or of `buffer` where the
  /// tensor's strides are others. Errc::corrupt when the storage does not have its checksum, which
  /// is computed once: a storage may be that of many tensors. Not for several threads.
  Result<std::span<const std::byte>> bytes(const PickledTensor& tensor,
                                           std::vector<std::byte>& buffer) const;

 private:
  TorchFile(ZipFile zip, std::string folder) : zip_(std::move(zip)), folder_(std::move(folder)) {}
  Result<> check_storages() const;
  Result<> check_views(std::uint64_t view_bytes) const;
  const ZipEntry* storage(const PickledTensor& tensor) const;

  ZipFile zip_;
  std::string folder_;  ///< prefix of the entries' names, with its slash
  PickleGraph graph_;
  mutable std::set<std::string> verified_;  ///< keys of storages that have their checksum
};

}  // namespace troupe::engine::checkpoint
