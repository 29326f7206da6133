// The rows of an adapter's tensors as PEFT's files have them: those of the base's matrix, which
// some families order otherwise than the parameters inside (models/storage.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/models/storage.h"

namespace troupe::engine::adapter {

/// How the file has the tensor of this name, without PEFT's prefix, and of this whole shape.
models::StoredTensor stored_form(const std::string& name, const Shape& shape,
                                 const models::DecoderSpec& spec);

/// The values inside from those of the file, and the other way; the same length.
std::vector<float> from_file(const models::StoredTensor& form, std::vector<float> values);
std::vector<float> to_file(const models::StoredTensor& form, std::vector<float> values);

}  // namespace troupe::engine::adapter
