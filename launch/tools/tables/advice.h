// The answer to a key, an option or an algorithm that another tool knows and troupe does not.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace troupe::launch::tools::tables {

/// True if the run's method reads this key of ours.
using ReadsKey = std::function<bool(std::string_view key)>;

/// "TRL, LLaMA-Factory: write train.save_every", or "" for a name that no tool knows.
/// `name` may have a section of ours in front ("train.lr", "lora.r"). Of several keys of ours that
/// one name can mean, names those in the same section, or those that the method reads.
std::string advice(std::string_view name, const ReadsKey& reads);

/// "TRL's reward is orm", or "".
std::string algorithm_advice(std::string_view algorithm);

}  // namespace troupe::launch::tools::tables
