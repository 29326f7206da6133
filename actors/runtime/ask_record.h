// AskRecord: the times of one ask, for timelines of which actor worked and which waited.
#pragma once

#include <cstdint>
#include <string>

#include "transports/transport.h"

namespace troupe::actors {

/// Times in nanoseconds of the steady clock, which the processes of one host share. asked <= began
/// <= ended <= answered.
struct AskRecord {
  transports::Address by;     ///< the actor that replied
  std::string type;           ///< the message's name
  std::int64_t asked = 0;     ///< when the message was sent
  std::int64_t began = 0;     ///< when its handler began; 0 when no handler ran
  std::int64_t ended = 0;     ///< when its handler ended; 0 when no handler ran
  std::int64_t answered = 0;  ///< when the reply arrived
  bool error = false;
};

}  // namespace troupe::actors
