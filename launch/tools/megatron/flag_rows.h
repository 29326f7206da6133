// The flags of Megatron core 0.8 and MindSpeed-LLM as rows of launch/tools/megatron/flags.h.
#pragma once

#include <string_view>

namespace troupe::launch::tools::megatron {

std::string_view flag_rows();

}  // namespace troupe::launch::tools::megatron
