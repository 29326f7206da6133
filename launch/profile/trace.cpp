#include "launch/profile/trace.h"

#include <algorithm>

#include "engine/base/json.h"

namespace troupe::launch {
namespace {

constexpr const char* categories[] = {"phase", "operator", "communication"};

Json event_json(std::string_view name, const char* category, const RecordedRank& of, int thread,
                std::int64_t begin, std::int64_t end) {
  const auto microseconds = [](std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) * 1e-3;
  };
  Json event;
  event.set("name", std::string(name))
      .set("cat", category)
      .set("ph", "X")
      .set("pid", of.rank)
      .set("tid", thread);
  event.set("ts", microseconds(begin - of.origin)).set("dur", microseconds(end - begin));
  return event;
}

Json arguments_of(const Recorder& recorder, const Event& event) {
  const SpanStart& span = event.span;
  Json out = Json::Object{};
  out.set("step", event.step);
  if (span.work.flops > 0) out.set("flops", span.work.flops);
  if (span.work.bytes > 0) out.set("bytes", span.work.bytes);
  if (!span.detail.empty()) out.set(span.kind == SpanKind::op ? "shapes" : "what", span.detail);
  if (!event.stack.empty()) out.set("stack", event.stack);
  if (recorder.has_busy()) out.set("cpu_us", static_cast<double>(event.spent.busy) * 1e-3);
  if (recorder.has_counts()) {
    out.set("instructions", event.spent.counts.instructions)
        .set("cycles", event.spent.counts.cycles);
    out.set("cache_misses", event.spent.counts.cache_misses);
  }
  return out;
}

Json named(const char* what, int thread, const std::string& name, const RecordedRank& of) {
  Json event;
  event.set("name", what).set("ph", "M").set("pid", of.rank).set("tid", thread);
  return event.set("args", Json(Json::Object{{"name", name}}));
}

Json memory_json(const Event& event, const RecordedRank& of) {
  Json out;
  out.set("name", "memory").set("ph", "C").set("pid", of.rank).set("tid", 0);
  out.set("ts", static_cast<double>(event.begin + event.spent.nanoseconds - of.origin) * 1e-3);
  return out.set("args", Json(Json::Object{{"tensors", event.tensor_bytes}}));
}

}  // namespace

std::string trace_json(const Recorder& recorder, const RecordedRank& of) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  const auto line = [&out](const Json& event) { out += event.dump() + ",\n"; };
  line(named("process_name", 0, of.name, of));
  line(named("thread_name", 0, "work", of));
  line(named("thread_name", 1, "steps", of));
  for (const auto& [step, time] : recorder.steps()) {
    line(event_json("step " + std::to_string(step), "step", of, 1, time.begin, time.end));
  }
  std::int64_t shown = -1;
  for (const Event& event : recorder.events()) {
    Json whole = event_json(event.span.name, categories[static_cast<std::size_t>(event.span.kind)],
                            of, 0, event.begin, event.begin + event.spent.nanoseconds);
    line(whole.set("args", arguments_of(recorder, event)));
    if (recorder.has_memory() && event.tensor_bytes != std::exchange(shown, event.tensor_bytes))
      line(memory_json(event, of));
  }
  out.resize(out.size() - 2);
  Json about;
  const auto& ceiling = recorder.ceiling();
  about.set("f32_flops_per_second", ceiling.f32_flops)
      .set("bf16_flops_per_second", ceiling.bf16_flops);
  about.set("read_bytes_per_second", ceiling.read_bytes).set("events_left_out", recorder.dropped());
  return out + "\n],\"otherData\":" + about.dump() + "}\n";
}

}  // namespace troupe::launch
