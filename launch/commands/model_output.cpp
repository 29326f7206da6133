#include "launch/commands/model_output.h"

#include <unistd.h>

#include <iostream>

namespace troupe::launch {

ModelOutput::ModelOutput() : terminal_(::isatty(STDOUT_FILENO) == 1) {
}

void ModelOutput::print(std::string_view piece) {
  if (terminal_)
    std::cout << stream_.add(piece) << std::flush;
  else
    std::cout << piece << std::flush;
}

void ModelOutput::print_line(std::string_view last) {
  print(last);
  std::cout << stream_.finish() << std::endl;
}

}  // namespace troupe::launch
