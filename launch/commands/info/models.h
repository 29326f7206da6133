// `troupe info --models`: the dense models of MindSpeed-LLM and the architecture that loads each.
#pragma once

namespace troupe::launch::commands {

/// Prints the table as text or as JSON. Returns the exit code, 0.
int list_models(bool as_json);

}  // namespace troupe::launch::commands
