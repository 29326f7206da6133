// WatchedSource: the weights of a model, whose reading is shown as progress on a terminal.
#pragma once

#include <cstdio>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/checkpoint/megatron/weight_source.h"
#include "launch/terminal/byte_progress.h"

namespace troupe::launch::tools::convert {

class WatchedSource : public engine::checkpoint::WeightSource {
 public:
  /// `bytes` are read in all. `source` outlives this.
  WatchedSource(const WeightSource& source, std::uint64_t bytes)
      : source_(source), progress_(stderr, options(), bytes, 0, terminal::steady_seconds) {}
  ~WatchedSource() override { progress_.hide(); }

  Result<engine::checkpoint::StoredType> type(const std::string& parameter) const override {
    return source_.type(parameter);
  }
  Result<std::span<const std::byte>> read(const std::string& parameter,
                                          std::vector<std::byte>& buffer) const override {
    auto bytes = source_.read(parameter, buffer);
    if (bytes) progress_.show(read_ += bytes->size(), cat(files_, " files"), false);
    return bytes;
  }
  /// A file has been written.
  void report(const std::string& path) const {
    progress_.hide();
    std::fputs(cat("wrote ", path, "\n").c_str(), stderr);
    ++files_;
  }

 private:
  static terminal::ProgressLine::Options options() {
    auto options = terminal::stderr_options();
    options.redraw = 0.2;
    return options;
  }

  const WeightSource& source_;
  mutable std::uint64_t read_ = 0, files_ = 0;
  mutable terminal::ByteProgress progress_;
};

}  // namespace troupe::launch::tools::convert
