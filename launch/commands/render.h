// `troupe render`: applies a chat template.
#pragma once

#include <string>

namespace troupe::launch {

struct RenderOptions {
  std::string model;          ///< a folder with a chat template
  std::string template_file;  ///< or a template file
  std::string prompt_type;    ///< or the name of a MindSpeed prompt type
};
/// Returns the exit code. Throws Failure.
int render(const RenderOptions& options);

}  // namespace troupe::launch
