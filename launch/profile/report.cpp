#include "launch/profile/report.h"

#include <algorithm>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::launch::profile {

namespace {

constexpr const char* kinds[] = {"phase", "operator", "communication"};

double seconds_of(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

/// Nanoseconds of all recorded steps.
std::int64_t whole_of(const Recorder& recorder) {
  std::int64_t sum = 0;
  for (const auto& [step, time] : recorder.steps()) sum += time.end - time.begin;
  return sum;
}

/// Nanoseconds outside operators and communication.
std::int64_t rest_of(const Recorder& recorder) {
  std::int64_t rest = whole_of(recorder);
  for (const Sum& sum : recorder.sums())
    if (sum.kind != SpanKind::phase) rest -= sum.spent.nanoseconds;
  return std::max<std::int64_t>(rest, 0);
}

/// A line of the text table.
struct Line {
  std::string text;
  Line& left(std::string cell, std::size_t width) {
    cell.resize(std::max(width, cell.size() + 1), ' ');
    text += cell;
    return *this;
  }
  Line& right(const std::string& cell, std::size_t width = 11) {
    text += std::string(width > cell.size() ? width - cell.size() : 1, ' ') + cell;
    return *this;
  }
};

std::string rate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? to_text(amount / seconds * 1e-9, 1) : "";
}
std::string percent(double share) {
  return to_text(100 * share, 1) + " %";
}

std::string label_of(const Sum& sum) {
  std::string label = sum.stack.empty() ? sum.name : cat(sum.stack, "/", sum.name);
  return sum.shapes.empty() ? label : cat(label, " ", sum.shapes);
}

std::string row_text(const Recorder& recorder, const Sum& sum, double whole, std::size_t width) {
  const double seconds = seconds_of(sum.spent.nanoseconds);
  Line line;
  line.left(label_of(sum), width)
      .right(std::to_string(sum.calls), 8)
      .right(to_text(seconds * 1e3, 2));
  line.right(whole > 0 ? percent(seconds / whole) : "")
      .right(rate(sum.work.flops, seconds))
      .right(rate(sum.work.bytes, seconds));
  line.right(sum.bound_seconds > 0 && seconds > 0 ? percent(sum.bound_seconds / seconds) : "");
  if (recorder.has_busy())
    line.right(seconds > 0 ? to_text(seconds_of(sum.spent.busy) / seconds, 2) : "");
  if (recorder.has_counts()) {
    const Counts& counts = sum.spent.counts;
    line.right(counts.cycles > 0 ? to_text(static_cast<double>(counts.instructions) /
                                               static_cast<double>(counts.cycles),
                                           2)
                                 : "");
    line.right(to_text(static_cast<double>(counts.cache_misses) * 1e-6, 3), 14);
  }
  return line.text + "\n";
}

std::string header_text(const Recorder& recorder, std::size_t width) {
  Line line;
  line.left("operator", width)
      .right("calls", 8)
      .right("ms")
      .right("of step")
      .right("GFLOP/s")
      .right("GB/s")
      .right("of ceiling");
  if (recorder.has_busy()) line.right("cores");
  if (recorder.has_counts()) line.right("instr/cyc").right("M cache misses", 14);
  return line.text + "\n";
}

}  // namespace

std::string table_csv(const Recorder& recorder) {
  const auto whole = static_cast<double>(whole_of(recorder));
  std::string out =
      "kind,name,stack,shapes,calls,seconds,share_of_step,flops,gflops_per_second,bytes,gb_per_"
      "second,share_of_ceiling,cores,instructions,"
      "cycles,cache_misses\n";
  const auto share = [&](double part, double all) {
    return all > 0 ? to_text(part / all) : std::string();
  };
  for (const Sum& sum : recorder.sums()) {
    const double seconds = seconds_of(sum.spent.nanoseconds);
    const auto spent =
        static_cast<double>(sum.spent.nanoseconds);  // an integer, so that shares are exact
    const auto per_second = [&](double amount) {
      return amount > 0 ? share(amount, spent) : std::string();
    };
    out += cat(kinds[static_cast<std::size_t>(sum.kind)], ",", sum.name, ",", sum.stack, ",\"",
               sum.shapes, "\",", sum.calls, ",", seconds, ",", share(spent, whole), ",",
               sum.work.flops, ",", per_second(sum.work.flops), ",", sum.work.bytes, ",");
    out += cat(per_second(sum.work.bytes), ",",
               sum.bound_seconds > 0 ? share(sum.bound_seconds, seconds) : "", ",",
               recorder.has_busy() ? share(seconds_of(sum.spent.busy), seconds) : "", ",");
    const Counts& counts = sum.spent.counts;
    out += recorder.has_counts()
               ? cat(counts.instructions, ",", counts.cycles, ",", counts.cache_misses, "\n")
               : ",,\n";
  }
  const std::int64_t rest = rest_of(recorder);
  return out + cat("rest,,,\"\",,", seconds_of(rest), ",", share(static_cast<double>(rest), whole),
                   ",,,,,,,,,\n");
}

std::string table_text(const Recorder& recorder, const RecordedRank& of) {
  const double whole = seconds_of(whole_of(recorder));
  const auto& steps = recorder.steps();
  const auto& ceiling = recorder.ceiling();
  const auto giga = [](double rate) { return to_text(rate * 1e-9, 1); };
  std::string out =
      cat("Profile of ", of.name, ": ", steps.size(), steps.size() == 1 ? " step" : " steps");
  if (!steps.empty())
    out += cat(" (", steps.begin()->first, " to ", steps.rbegin()->first, "), ", to_text(whole, 3),
               " s");
  out += cat(". Ceilings: square GEMM ", giga(ceiling.f32_flops), " GFLOP/s in f32",
             ceiling.bf16_flops > 0 ? cat(", ", giga(ceiling.bf16_flops), " in bf16") : "",
             "; reading ", giga(ceiling.read_bytes), " GB/s.");
  if (recorder.has_memory())
    out += cat(" Peak tensor memory: ",
               to_text(static_cast<double>(recorder.peak_tensor_bytes()) / 1048576.0, 1), " MiB.");
  if (recorder.dropped() > 0)
    out +=
        cat(" The trace omits the last ", recorder.dropped(), " spans; the table includes them.");
  const auto sums = recorder.sums();
  std::size_t width = 22;
  for (const Sum& sum : sums)
    width = std::min<std::size_t>(96, std::max(width, label_of(sum).size() + 1));
  out += "\n" + header_text(recorder, width);
  for (const Sum& sum : sums)
    if (sum.kind != SpanKind::phase) out += row_text(recorder, sum, whole, width);
  const double rest = seconds_of(rest_of(recorder));
  out += Line()
             .left("(other)", width)
             .right("", 8)
             .right(to_text(rest * 1e3, 2))
             .right(whole > 0 ? percent(rest / whole) : "")
             .text;
  out += "\nphases, including nested operators\n";
  for (const Sum& sum : sums)
    if (sum.kind == SpanKind::phase) out += row_text(recorder, sum, whole, width);
  return out;
}

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

}  // namespace troupe::launch::profile
