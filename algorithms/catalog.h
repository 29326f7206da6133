// The catalog: every loss by its name, for trainers that are told by message which one to use.
#pragma once

#include "engine/loss/loss.h"

namespace troupe::algorithms {

const engine::loss::LossTable& losses();

}  // namespace troupe::algorithms
