#include "actors/roles/weight_assembly.h"

#include <utility>

#include "actors/roles/weight_coding.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "engine/ops/borrowed.h"

namespace troupe::actors::roles {

using protocol::WeightPart;

Result<WeightPart> weight_part(const protocol::ReadWeights& request, std::span<const float> values,
                               const BaseWeights& base) {
  if (request.first > values.size() || request.count > values.size() - request.first)
    return fail(Errc::bad_input,
                cat("weights of version ", request.version, ": expected a part of ", values.size(),
                    " values, found ", request.count, " from ", request.first));
  const auto part = values.subspan(request.first, request.count);
  WeightPart out{.version = request.version,
                 .first = request.first,
                 .count = request.count,
                 .coding = request.coding,
                 .base = request.base,
                 .bytes = {}};
  std::span<const float> had;
  if (request.coding == WeightCoding::delta) {
    if (base.values && base.version == request.base && base.values->size() == values.size())
      had = base.values->subspan(request.first, request.count);
    else
      out.coding = WeightCoding::bf16;
  }
  out.bytes = std::make_shared<const std::vector<std::byte>>(encode_values(out.coding, part, had));
  out.checksum = engine::checkpoint::checksum(part);
  return out;
}

void WeightAssembly::begin(std::uint64_t version) {
  values_ = {};
  auto memory = engine::ops::host_array(static_cast<std::int64_t>(count_));
  into_ = memory.values;
  values_ = {std::move(memory.owner), into_};
  version_ = version;
  filled_ = 0;
}

Result<> WeightAssembly::load(const WeightPart& part, const BaseWeights& base) {
  const std::string which = cat("weights of version ", part.version, ", values from ", part.first);
  const bool starts = part.first == 0;
  if (part.count == 0 || part.count > count_ || part.first > count_ - part.count)
    return fail(Errc::bad_input, cat(which, ": expected at most ", count_,
                                     " values, found a part "
                                     "that ends behind them or is empty"));
  if (!starts && (part.version != version_ || part.first != filled_ || into_.empty()))
    return fail(Errc::bad_input, cat(which, ": expected the part that begins at ", filled_,
                                     " of version ", version_, "; a part was lost"));
  std::span<const float> had;
  if (part.coding == WeightCoding::delta) {
    if (!base.values || base.version != part.base || base.values->size() != count_)
      return fail(Errc::bad_input,
                  cat(which, ": a difference to version ", part.base, ", found version ",
                      base.version, base.values ? "" : ", whose values are not kept"));
    had = base.values->subspan(part.first, part.count);
  }
  if (starts) begin(part.version);
  const auto values = into_.subspan(part.first, part.count);
  const auto decoded = decode_values(part.coding, *part.bytes, had, values);
  if (!decoded || engine::checkpoint::checksum(values) != part.checksum) {
    filled_ = 0;
    return fail(Errc::corrupt, cat(which, " arrived with other bytes than were sent",
                                   decoded ? "" : cat(": ", decoded.error().what)));
  }
  filled_ += part.count;
  return {};
}

Result<> WeightAssembly::map(const protocol::MapWeights& message) {
  auto memory = SharedMemory::open(message.memory, count_ * sizeof(float));
  RETURN_IF_ERROR(memory);
  const auto bytes = (*memory)->bytes();
  values_ = {*memory, {reinterpret_cast<const float*>(bytes.data()), count_}};
  into_ = {};
  version_ = message.version;
  filled_ = count_;
  return {};
}

Result<SharedArray<float>> WeightAssembly::take(std::uint64_t version) {
  if (!values_ || version_ != version || filled_ != count_)
    return fail(Errc::bad_input, cat("weights of version ", version, ": expected ", count_,
                                     " values, found ", version_ == version ? filled_ : 0));
  filled_ = 0;
  into_ = {};
  return std::exchange(values_, {});
}

}  // namespace troupe::actors::roles
