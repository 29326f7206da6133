// The batch arithmetic of other tools: rows per device, accumulation, devices, samples per prompt.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "launch/tools/tables/tool_table.h"

namespace troupe::launch::tools::migration {

struct BatchNumbers {
  std::int64_t batch = 0;        ///< train.batch_size; 0: the tool's settings do not say it
  std::int64_t minibatches = 1;  ///< optimizer steps of a rollout and pass
  std::string batch_text;        ///< "1 (per_device_train_batch_size) x 8 (...) = 8"
  std::string minibatches_text;
};

/// The value that the run gives a setting of the tool, or `otherwise`.
using NumberOf = std::function<double(std::string_view name, double otherwise)>;

/// `method`: the recipe's name. `devices`: how many the run was for.
BatchNumbers batch_numbers(tables::Tool tool, std::string_view method, std::int64_t devices,
                           const NumberOf& number);

}  // namespace troupe::launch::tools::migration
