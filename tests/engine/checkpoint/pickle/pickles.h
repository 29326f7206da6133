// Pickles and torch files as bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/pickle/torch_writer.h"
#include "engine/checkpoint/pickle/zip_writer.h"
#include "tests/engine/checkpoint/scratch.h"

namespace troupe::engine::checkpoint {

/// A literal with its zeros.
template <std::size_t N>
std::string raw(const char (&text)[N]) {
  return std::string(text, N - 1);
}

inline std::span<const std::byte> span_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// A text of a pickle (SHORT_BINUNICODE).
inline std::string pickled(std::string_view text) {
  return std::string("\x8c") + static_cast<char>(text.size()) + std::string(text);
}

/// (storage, class, key, location, elements) and BINPERSID.
inline std::string pickled_storage(std::string_view type, std::string_view key, int count) {
  return cat("(", pickled("storage"), "ctorch\n", type, "\n", pickled(key), pickled("cpu"), "K",
             static_cast<char>(count), "tQ");
}

/// Writes a file as torch.save does, from a pickle and the bytes of storage "0".
inline void put_torch_file(const std::string& path, std::string_view pickle,
                           std::string_view storage) {
  auto zip = value_or_throw(ZipWriter::create(path));
  value_or_throw(zip.add("x/data.pkl", span_of(pickle)));
  value_or_throw(zip.add("x/data/0", span_of(storage)));
  value_or_throw(zip.finish());
}

}  // namespace troupe::engine::checkpoint
