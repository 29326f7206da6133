#include "launch/run/exit_code.h"

namespace troupe::launch::run {

int exit_code(Errc code) {
  switch (code) {
    case Errc::usage:
      return exit_usage;
    case Errc::bad_input:
      return 3;
    case Errc::not_found:
      return 4;
    case Errc::corrupt:
      return 5;
    case Errc::unsupported:
      return 6;
    case Errc::io:
      return 7;
    case Errc::timeout:
      return 8;
    case Errc::closed:
      return 9;
    case Errc::full:
      return 10;
    case Errc::cancelled:
      return exit_interrupted;
    case Errc::internal:
      return exit_internal;
  }
  return exit_internal;
}

}  // namespace troupe::launch::run
