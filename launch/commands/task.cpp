#include "launch/commands/task.h"

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::launch::commands {

Result<> set_task(Task task, Json& settings) {
  const bool beams = task == Task::beam_search || task == Task::beam_search_with_sampling,
             sampling = task != Task::greedy && task != Task::beam_search;
  if (const Json* given = settings.find("num_beams");
      given && given->is_integer() && (given->integer() > 1) != beams)
    return fail(Errc::usage, cat("--task ", name_of(task), ": expected --num-beams ",
                                 beams ? "above 1" : "1", ", found ", given->integer()));
  settings.set("do_sample", sampling);
  if (!settings.find("num_beams")) settings.set("num_beams", beams ? 2 : 1);
  return {};
}

}  // namespace troupe::launch::commands
