// The catalog: every loss by its name, for trainers that receive the loss in a message.
#pragma once

#include "engine/loss/loss.h"

namespace troupe::algorithms {

const engine::loss::LossTable& losses();

}  // namespace troupe::algorithms
