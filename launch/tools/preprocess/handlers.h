// The handlers of MindSpeed's preprocess_data.py: how the rows of each are read, and which token
// files they become.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/layouts/layout.h"

namespace troupe::launch::tools::preprocess {

/// How a handler names columns in --map-keys.
enum class MapKeys { none, alpaca, sharegpt };

struct Handler {
  std::string_view name;
  engine::data::Purpose purpose = engine::data::Purpose::sft;
  engine::data::Layout layout = engine::data::Layout::automatic;
  MapKeys keys = MapKeys::none;
  /// Columns of troupe that are not used, although a row may have them.
  std::vector<std::string_view> unused = {};
  bool answers = false;  ///< prompts: --dataset-additional-keys become files of their own
};

/// The handler that writes columns of text, PREFIX_KEY_document; the others write
/// PREFIX_packed_KEY_document.
inline constexpr std::string_view text_handler = "GeneralPretrainHandler";

/// The handlers of packed files.
std::span<const Handler> packed_handlers();
/// Errc::usage with the known names.
Result<const Handler*> find_handler(std::string_view name);

/// Columns and tags of the data library for --map-keys, a JSON object with MindSpeed's names:
/// {"prompt": "problem", "query": "", "response": "answer"} or {"messages": "conversations",
/// "tags": {...}}. "": the handler's own columns. Errc::usage for unknown names.
struct ColumnMap {
  std::map<std::string, std::string> columns;
  engine::data::Tags tags;
};
Result<ColumnMap> column_map(const Handler& handler, const std::string& map_keys);

}  // namespace troupe::launch::tools::preprocess
