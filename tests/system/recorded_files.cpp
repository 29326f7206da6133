#include "tests/system/recorded_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/base/errors/check.h"
#include "engine/base/files/file.h"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

std::string folder_of_path(const std::string& path) {
  return fs::path(path).parent_path().string();
}
std::string name_in_folder(const std::string& path) {
  return fs::path(path).filename().string();
}

// Bytes that differ from the durable ones are zero.
std::string with_zeros(const std::string& data, const std::string& durable) {
  std::string out(data.size(), '\0');
  for (std::size_t i = 0; i < std::min(data.size(), durable.size()); ++i)
    if (data[i] == durable[i]) out[i] = data[i];
  return out;
}

constexpr std::size_t sector = 512;

// The durable bytes, with parts of what was written since.
std::string torn(std::string bytes,
                 const std::vector<std::pair<std::uint64_t, std::string>>& changes,
                 std::mt19937_64& draw) {
  for (const auto& [offset, data] : changes) {
    const auto fate = draw() % 5;
    if (fate < 2) continue;  // lost
    if (data.empty()) bytes.resize(offset);
    for (std::size_t at = 0; at < data.size();) {
      const std::size_t end = std::min(data.size(), at + sector - (offset + at) % sector);
      if (fate < 4 || draw() % 2 == 0) {
        bytes.resize(std::max<std::size_t>(bytes.size(), offset + end));
        bytes.replace(offset + at, end - at, data, at, end - at);
      }
      at = end;
    }
  }
  return bytes;
}

}  // namespace

std::vector<FileOperation> read_recording(const std::string& file) {
  const std::string text = value_or_throw(read_file(file));
  std::vector<FileOperation> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto line = text.find('\n', at);
    check(line != std::string::npos, "a recording ends within a record");
    std::istringstream head(text.substr(at, line - at));
    FileOperation operation;
    std::size_t path = 0, other = 0, data = 0;
    head >> operation.kind >> path >> other >> operation.offset >> data;
    check(!head.fail() && line + 1 + path + other + data <= text.size(), "a damaged recording");
    operation.path = text.substr(line + 1, path);
    operation.other = text.substr(line + 1 + path, other);
    operation.data = text.substr(line + 1 + path + other, data);
    at = line + 1 + path + other + data;
    out.push_back(std::move(operation));
  }
  return out;
}

RecordedFiles::RecordedFiles() : root_(std::make_shared<Node>()) {
  root_->is_folder = true;
}

RecordedFiles::NodePtr RecordedFiles::find(const std::string& path) const {
  NodePtr node = root_;
  for (const auto& part : fs::path(path)) {
    const auto found = node->names.find(part.string());
    if (found == node->names.end()) return nullptr;
    node = found->second;
  }
  return node;
}

RecordedFiles::NodePtr& RecordedFiles::entry(const std::string& path) {
  const NodePtr folder = find(folder_of_path(path));
  check(folder != nullptr && folder->is_folder, "a recorded name lies in no recorded folder");
  return folder->names[name_in_folder(path)];
}

void RecordedFiles::remove(const std::string& path) {
  find(folder_of_path(path))->names.erase(name_in_folder(path));
}

void RecordedFiles::apply(const FileOperation& operation) {
  const auto& [kind, path, other, offset, data] = operation;
  if (kind == 'n') return;
  if (kind == 'c' || kind == 'd' || kind == 'l') {
    const auto node = std::make_shared<Node>();
    node->is_folder = kind == 'd';
    if (kind == 'l') node->link = other;
    entry(path) = node;
    return;
  }
  const NodePtr node = find(path);
  if (!node) return;  // open, but its name was removed
  if (kind == 'w') {
    node->data.resize(std::max(node->data.size(), static_cast<std::size_t>(offset) + data.size()));
    node->data.replace(static_cast<std::size_t>(offset), data.size(), data);
    node->changes.emplace_back(offset, data);
  } else if (kind == 't') {
    node->data.resize(other.empty() ? 0 : std::stoull(other));
    node->changes.emplace_back(node->data.size(), "");
  } else if (kind == 's') {
    node->durable = node->data;
    node->durable_names = node->names;
    node->changes.clear();
  } else if (kind == 'r') {
    remove(path);
    entry(other) = node;
  } else if (kind == 'x') {
    std::swap(entry(path), entry(other));
  } else if (kind == 'u') {
    remove(path);
  }
}

void RecordedFiles::restore(const Node& node, const std::string& path, bool zeros) {
  if (!node.link.empty()) {
    fs::create_symlink(node.link, path);
    return;
  }
  if (!node.is_folder) {
    std::ofstream(path, std::ios::binary)
        << (zeros ? with_zeros(node.data, node.durable) : node.durable);
    return;
  }
  fs::create_directories(path);
  for (const auto& [name, child] : zeros ? node.names : node.durable_names)
    restore(*child, path + "/" + name, zeros);
}

void RecordedFiles::restore_durable(const std::string& folder) const {
  restore(*root_, folder, false);
}
void RecordedFiles::restore_with_zeros(const std::string& folder) const {
  restore(*root_, folder, true);
}

void RecordedFiles::restore_torn(const Node& node, const std::string& path, std::mt19937_64& draw) {
  if (!node.link.empty() || !node.is_folder) {
    if (!node.link.empty())
      fs::create_symlink(node.link, path);
    else
      std::ofstream(path, std::ios::binary) << torn(node.durable, node.changes, draw);
    return;
  }
  fs::create_directories(path);
  auto names = node.durable_names;
  for (const auto& [name, child] : node.names)
    if (draw() % 2 == 0) names[name] = child;
  for (const auto& [name, child] : names) {
    const auto now = node.names.find(name);
    if (now == node.names.end() && draw() % 2 == 0) continue;  // its removal is not lost
    restore_torn(*child, path + "/" + name, draw);
  }
}

void RecordedFiles::restore_torn(const std::string& folder, std::uint64_t seed) const {
  std::mt19937_64 draw(seed);
  restore_torn(*root_, folder, draw);
}

}  // namespace troupe::test
