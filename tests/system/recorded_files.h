// What a run did to its files, recorded by tests/support/file_recorder.cpp, and what a power
// failure may leave of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

/// Paths are relative to the recorded directory.
struct FileOperation {
  /// c: create, w: write, t: truncate to the size in `other`, s: fsync or fdatasync, r: rename to
  /// `other`, x: exchange with `other`, u: unlink, d: create a folder, l: create a link to `other`,
  /// n: nothing (an error, or an existing file that is opened)
  char kind = 0;
  std::string path, other;
  std::uint64_t offset = 0;
  std::string data;
};
std::vector<FileOperation> read_recording(const std::string& file);

/// The recorded directory, as a file system keeps it that writes nothing before it must. It was
/// empty at the beginning.
class RecordedFiles {
 public:
  RecordedFiles();
  void apply(const FileOperation& operation);
  /// Names and data that no fsync made durable are lost.
  void restore_durable(const std::string& folder) const;
  /// All names are there; of a file, bytes that no fsync made durable are zero.
  void restore_with_zeros(const std::string& folder) const;
  /// Of the operations that no fsync made durable, each is drawn: names are there or not; a write
  /// is there, is lost, or is torn: some of its sectors of 512 bytes are there.
  void restore_torn(const std::string& folder, std::uint64_t seed) const;

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  struct Node {
    bool is_folder = false;
    std::string link;           ///< the target of a symbolic link
    std::string data, durable;  ///< content, and as of the last fsync
    /// Since the last fsync; without data: truncated to `offset`.
    std::vector<std::pair<std::uint64_t, std::string>> changes;
    std::map<std::string, NodePtr> names, durable_names;
  };
  NodePtr find(const std::string& path) const;
  NodePtr& entry(const std::string& path);
  void remove(const std::string& path);
  static void restore(const Node& node, const std::string& path, bool zeros);
  static void restore_torn(const Node& node, const std::string& path, std::mt19937_64& draw);

  NodePtr root_;
};

}  // namespace troupe::test
