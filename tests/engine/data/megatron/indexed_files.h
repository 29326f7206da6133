// Files of an indexed dataset for tests, byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/files/file.h"
#include "engine/data/megatron/indexed_dataset_writer.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data::megatron {

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The example of the format's description: documents {5, 6, 7} and {8, 9} in int32.
inline std::string example_data() {
  std::string out;
  for (const std::int32_t token : {5, 6, 7, 8, 9}) put(out, token);
  return out;
}
inline std::string example_index() {
  std::string out(index_magic);
  put(out, std::uint64_t{1});
  put(out, std::uint8_t{4});
  for (const std::uint64_t count : {2, 3}) put(out, count);
  for (const std::int32_t length : {3, 2}) put(out, length);
  for (const std::int64_t offset : {0, 12}) put(out, offset);
  for (const std::int64_t first : {0, 1, 2}) put(out, first);
  return out;
}

inline std::string content(const std::string& path) {
  return value_or_throw(read_file(path));
}

/// Writes each document as one sequence.
inline std::string write_documents(const Scratch& scratch, const std::string& name, TokenType type,
                                   const std::vector<std::vector<std::int32_t>>& documents) {
  auto writer = value_or_throw(IndexedDatasetWriter::create(scratch.path(name), type));
  for (const auto& document : documents) {
    value_or_throw(writer.add_sequence(document));
    value_or_throw(writer.end_document());
  }
  value_or_throw(writer.finish());
  return scratch.path(name);
}

}  // namespace troupe::engine::data::megatron
