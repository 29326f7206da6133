#include "launch/commands/eval/compare.h"

#include <iostream>

#include "launch/evaluation/comparison.h"

namespace troupe::launch::commands {

int compare_evaluations(const std::string& first, const std::string& second, bool json) {
  const auto all = value_or_throw(evaluation::compare_results(first, second));
  std::cout << (json ? evaluation::comparison_json(all).dump() + "\n"
                     : evaluation::comparison_table(all));
  return 0;
}

}  // namespace troupe::launch::commands
