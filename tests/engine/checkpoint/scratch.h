// A folder that lives as long as a test, and helpers to make files in it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {

/// The folder of the models in tests/data.
inline const std::string data_folder = std::string(TROUPE_TEST_DATA) + "/models/";

class Scratch {
 public:
  Scratch() {
    static int count = 0;
    // A memory file system if possible: the tests of crashes call fsync thousands of times.
    const std::filesystem::path root =
        ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ::testing::TempDir();
    path_ =
        (root / ("troupe-checkpoint-" + std::to_string(::getpid()) + "-" + std::to_string(count++)))
            .string();
    std::filesystem::create_directories(path_);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void put(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

inline std::string slurp(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

/// The bytes of a safetensors file with this header text (whatever it says) and data.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  const std::uint64_t length = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out.append(header).append(data);
}

/// One member of a header.
inline std::string tensor(std::string_view name, std::string_view dtype, std::string_view shape,
                          std::string_view offsets) {
  return cat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
             ",\"data_offsets\":", offsets, "}");
}

/// F32 values as bytes.
inline std::string bytes_of_floats(const std::vector<float>& values) {
  std::string out(values.size() * sizeof(float), '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

}  // namespace troupe::engine::checkpoint
