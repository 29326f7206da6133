#include "engine/adapter/stored_rows.h"

#include "engine/base/text.h"

namespace troupe::engine::adapter {

models::StoredTensor stored_form(const std::string& name, const Shape& shape,
                                 const models::DecoderSpec& spec) {
  const auto ends =
      [&](std::string_view projection) {  // A has the base's columns, which nobody reorders
        return name.ends_with(cat(projection, models::lora_b)) ||
               name.ends_with(cat(projection, models::lora_magnitude));
      };
  const bool turns = ends(".self_attn.q_proj") || ends(".self_attn.k_proj");
  const bool vector = shape.rank() == 1;
  return {name,
          false,
          {{name, 0, shape[0], turns ? spec.head_order : models::HeadOrder{}}},
          vector ? 1 : shape[1],
          vector};
}

std::vector<float> from_file(const models::StoredTensor& form, std::vector<float> values) {
  if (form.plain()) return values;
  std::vector<float> out(values.size());
  models::unpack(form, values.data(), form.name, out.data());
  return out;
}

std::vector<float> to_file(const models::StoredTensor& form, std::vector<float> values) {
  return form.plain() ? values
                      : models::pack(form, [&](const std::string&) { return values.data(); });
}

}  // namespace troupe::engine::adapter
