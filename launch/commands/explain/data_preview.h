// DataPreview: what a run would read: the rows used and dropped, the lengths of the examples, and
// the first examples as tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/layouts/text_encoder.h"
#include "engine/data/loader/dataset.h"
#include "engine/data/sample_parts.h"
#include "launch/config/run_config.h"

namespace troupe::launch::commands {

/// A sequence as the model reads it.
struct ShownSequence {
  std::string title;  ///< "chosen", or "" if the example has one sequence
  std::vector<std::int32_t> ids;
  std::vector<float> weights;  ///< of each token in the loss; as long as ids
  /// Its texts with their roles, before max_length; empty for rows of token ids.
  std::vector<engine::data::SamplePart> parts = {};
};

struct ShownExample {
  std::vector<ShownSequence> sequences;
  std::vector<std::string> notes;  ///< what else the example has: the answer of a prompt
  Json::Object members = {};       ///< the same under names, and the tools of the row
};

/// Bounds on the work of a preview, over all sources.
struct PreviewLimits {
  std::int64_t rows = 20000;
  std::int64_t tokens = 4 << 20;
  /// Files up to this size are read to their end, without tokenization, to count their rows.
  std::uint64_t counted_bytes = 512u << 20;
  std::int64_t shown = 1;  ///< examples of DataPreview::shown
  std::int64_t examples = std::int64_t{1} << 62;
};

struct DataPreview {
  engine::data::DataReport report;  ///< of the rows that were tokenized
  bool complete = true;             ///< those are all rows
  /// Rows of all sources; nullopt: unknown.
  std::optional<std::int64_t> rows = 0;
  /// Examples of each source; scaled from the rows that were tokenized if they are not all.
  std::vector<engine::data::SourceInfo> sources;
  std::int64_t examples = 0;          ///< of the rows that were tokenized, as all that follows
  std::vector<std::int64_t> lengths;  ///< of each sequence, in tokens
  std::int64_t tokens = 0;
  std::int64_t trained_tokens = 0;  ///< tokens with a weight in the loss
  std::vector<ShownExample> shown;  ///< the first examples
};

/// Reads the rows as a run of `config` would. `options` from data_settings() and prepare_rows().
/// The errors of load(). Throws Failure.
Result<DataPreview> preview_data(const config::RunConfig& config,
                                 const engine::data::DataOptions& options,
                                 const engine::data::TextEncoder& text,
                                 const PreviewLimits& limits = PreviewLimits());

}  // namespace troupe::launch::commands
