#include "launch/journal/timings_file.h"

#include <algorithm>

#include "engine/base/json/fields.h"
#include "engine/base/json/json.h"
#include "engine/base/log/log_file.h"
#include "engine/base/text/text.h"
#include "launch/journal/metrics_file.h"

namespace troupe::launch::journal {

void StepWork::add(const algorithms::Processed& more) {
  processed.tokens += more.tokens;
  processed.samples += more.samples;
  processed.epoch = more.epoch;
}

algorithms::Metrics timing_metrics(const StepSeconds& seconds, const StepWork& work,
                                   const Measured& measured) {
  algorithms::Metrics out{{"timing/all", seconds.all}};
  // A part that the method was not said to have is shown where it took time.
  const auto shown = [&](StepPart part) {
    return part == StepPart::other || seconds.parts[index_of(part)] > 0 ||
           std::ranges::find(measured.parts, part) != measured.parts.end();
  };
  for (const StepPart part :
       {StepPart::rollout, StepPart::weights, StepPart::reference, StepPart::reward,
        StepPart::advantage, StepPart::update, StepPart::update_critic, StepPart::eval,
        StepPart::save, StepPart::other})
    if (shown(part))
      out.emplace_back(cat("timing/", part_names[index_of(part)]), seconds.parts[index_of(part)]);
  for (const StepPart part : {StepPart::rollout, StepPart::reference, StepPart::reward})
    if (shown(part))
      out.emplace_back(cat("timing/non_overlap_", part_names[index_of(part)]),
                       seconds.alone[index_of(part)]);
  if (seconds.all > 0) {
    // Step 0 processes nothing: it is an evaluation.
    if (work.processed.samples > 0) {
      out.emplace_back("perf/tokens_per_second", work.processed.tokens / seconds.all);
      out.emplace_back("perf/samples_per_second", work.processed.samples / seconds.all);
    }
    const double tflops = work.model_flops / seconds.all * 1e-12;
    if (measured.flops) out.emplace_back("perf/tflops", tflops);
    if (measured.flops && measured.peak_tflops > 0) {
      out.emplace_back("perf/mfu", tflops / measured.peak_tflops);
      out.emplace_back("perf/hfu",
                       work.hardware_flops / seconds.all * 1e-12 / measured.peak_tflops);
    }
  }
  if (work.processed.epoch) out.emplace_back("epoch", *work.processed.epoch);
  return out;
}

std::string timings_header(double now, std::int64_t steps, std::int64_t done_steps,
                           const Measured& measured) {
  Json line;
  line.set("time", utc_text(now)).set("steps", steps);
  if (measured.peak_tflops > 0)
    line.set("peak_tflops", measured.peak_tflops).set("peak", measured.peak_source);
  if (done_steps > 0) line.set("resumed_after_step", done_steps);
  return line.dump() + "\n";
}

std::string timings_line(std::int64_t step, double now, double wall,
                         const algorithms::Metrics& metrics,
                         const std::vector<std::string>& warnings) {
  Json line;
  line.set("step", step).set("time", utc_text(now)).set("wall", wall);
  for (const auto& [name, value] : metrics) line.set(name, value);
  if (!warnings.empty()) line.set("warnings", Json::Array(warnings.begin(), warnings.end()));
  return line.dump() + "\n";
}

std::string timings_end(double now, RunEnd how) {
  return Json().set("time", utc_text(now)).set("ended", std::string(name_of(how))).dump() + "\n";
}

Result<double> truncate_timings_after(const OutputFolder& folder, const std::string& name,
                                      std::int64_t step) {
  if (!folder.contains(name)) return 0;
  const std::string path = folder.path_of(name);
  RETURN_IF_ERROR(folder.read(name));  // do not replace an unreadable file
  std::string kept, headers;
  std::int64_t last = -1;
  double wall = 0;
  for_each_line(path, [&](const Json& line, std::string_view text) {
    const Json* found = line.find("step");
    if (!found) {
      headers.append(text).push_back('\n');
      return;
    }
    if (!found->is_integer() || found->integer() > step || found->integer() <= last) return;
    last = found->integer();
    wall = get_number(line, "wall", path).value_or(wall);
    kept.append(std::exchange(headers, {})).append(text).push_back('\n');
  });
  RETURN_IF_ERROR(folder.replace(name, kept));
  return wall;
}

}  // namespace troupe::launch::journal
