// AskRecord: the history of one ask, for whoever draws who worked and who waited.
#pragma once

#include <cstdint>
#include <string>

#include "transports/transport.h"

namespace troupe::actors {

/// Times in nanoseconds of the steady clock, which the processes of one host share. asked <= began
/// <= ended <= answered.
struct AskRecord {
  transports::Address by;
  std::string type;        ///< the message's name
  std::int64_t asked = 0;  ///< when it left
  std::int64_t began =
      0;  ///< when its handler began: between asked and began it travelled, and waited in a mailbox
  std::int64_t ended = 0;  ///< when its handler ended; began and ended are 0 when none ran
  std::int64_t answered = 0;
  bool error = false;
};

}  // namespace troupe::actors
