// Names of the files of a folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Names of the regular files of a folder that end with `extension` (".jinja"), sorted; empty if
/// there is no such folder. At most 1,000 entries are read.
std::vector<std::string> file_names(const std::string& folder, std::string_view extension);

/// Folder of the named chat templates of a model folder, beside chat_template.jinja.
constexpr std::string_view additional_templates_folder = "additional_chat_templates";

}  // namespace troupe
