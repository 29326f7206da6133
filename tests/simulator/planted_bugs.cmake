# Bugs of admission, hand-over and versioning that the simulator has to find. Each is planted in a copy of the production code, whose
# other bugs stay switched off: planted_bug(NAME FILE ORIGINAL MUTANT) replaces an expression, or statements that end with a semicolon.
# ORIGINAL has to occur exactly once in FILE of algorithms/.
set(planted_folder ${CMAKE_CURRENT_BINARY_DIR}/planted)
set(planted_names "")
set(planted_files "")

function(planted_bug name file original mutant)
  string(MAKE_C_IDENTIFIER "planted_${file}" text)
  if(NOT DEFINED ${text})
    file(READ ${PROJECT_SOURCE_DIR}/algorithms/${file} ${text})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/algorithms/${file})
    list(APPEND planted_files ${file})
  endif()
  string(FIND "${${text}}" "${original}" first)
  string(FIND "${${text}}" "${original}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "planted bug ${name}: expected exactly one occurrence in algorithms/${file} of:\n${original}")
  endif()
  if(original MATCHES "\;$")
    set(changed "{ if (::troupe::simulator::planted(\"${name}\")) { ${mutant} } else { ${original} } }")
  else()
    set(changed "(::troupe::simulator::planted(\"${name}\") ? (${mutant}) : (${original}))")
  endif()
  string(REPLACE "${original}" "${changed}" ${text} "${${text}}")
  set(${text} "${${text}}" PARENT_SCOPE)
  set(planted_files ${planted_files} PARENT_SCOPE)
  list(APPEND planted_names ${name})
  list(REMOVE_DUPLICATES planted_names)
  set(planted_names ${planted_names} PARENT_SCOPE)
endfunction()

# Admission.
planted_bug(admits_one_batch_too_many rollout/batches.h "(limits_.eta + version_ + 1)" "limits_.eta + version_ + 2")
planted_bug(forgets_accepted_batches rollout/batches.h "accepted_ += prompts;" "")
planted_bug(exceeds_in_flight rollout/batches.cpp "std::max<std::int64_t>(1, plan.async.in_flight / plan.samples)"
  "plan.async.in_flight / plan.samples + 1")
planted_bug(reads_prompts_before_the_refills rollout/batches.cpp
  "(free() || versions_.contains(version_of(started_))) &&\n         (!batches_.in_turn || sampled_ == started_)"
  "free() || versions_.contains(version_of(started_))")
# Hand-over.
planted_bug(trains_in_the_order_of_completion rollout/batches.cpp "!ready_.contains(trained_)" "ready_.empty()")
planted_bug(trains_in_the_order_of_completion rollout/batches.cpp "ready_.at(trained_)" "ready_.begin()->second")
planted_bug(trains_in_the_order_of_completion rollout/batches.cpp "ready_.erase(trained_);" "ready_.erase(ready_.begin());")
planted_bug(keeps_trained_batches rollout/batches.cpp "ready_.erase(trained_);" "")
planted_bug(packs_samples_with_other_prompts rollout/chunks.cpp "chunk.first = first;" "chunk.first = 0;")
planted_bug(rewards_chunks_twice rollout/chunks.cpp "if (c.verifier) chunk.rule_rewards = c.verifier->ask(message(), c.timeout);"
  "chunk.rule_rewards = c.verifier->ask(message(), c.timeout); chunk.rule_rewards = c.verifier->ask(message(), c.timeout);")
planted_bug(repeats_sample_ids rollout/samples.cpp "prompts.ids[i] * stride + g" "i * stride + g")
# Versioning.
planted_bug(samples_with_one_version_later rollout/batches.cpp "std::max(batch - batches_.async.eta, oldest_)"
  "std::max(batch - batches_.async.eta + 1, oldest_)")
planted_bug(keeps_the_first_weights rollout/rollout_pool.cpp "worker.version != job.weights->version" "!worker.version")
planted_bug(starts_with_any_version rollout/rollout_pool.cpp "*worker.version >= job.oldest" "*worker.version + 1000 >= job.oldest")
planted_bug(does_not_wait_for_the_commit rollout/rollout_pool.cpp "co_await committing.get();" "")
planted_bug(evaluates_before_older_batches rollout/batches.cpp "sampled_ < older" "sampled_ < 0")
# Checkpoints.
planted_bug(saves_too_few_versions rollout/batches.cpp "version >= version_of(trained_) && version < trained_"
  "version > version_of(trained_) && version < trained_")
planted_bug(forgets_finished_samples rollout/batches.cpp "saves_samples() ? finished_.all() : std::vector<FinishedSample>()"
  "std::vector<FinishedSample>()")
planted_bug(does_not_count_finished_samples rollout/batches.cpp "state.finished = samples.size();" "")
planted_bug(samples_finished_samples_again rollout/chunks.cpp "!step.finished || !step.finished->find(step.batch, request.sample_id)" "true")
planted_bug(keeps_samples_of_trained_batches rollout/batches.cpp "finished_.drop_before(trained_);" "")
planted_bug(counts_sampled_batches rollout/batches.cpp "state.batches = trained_;" "state.batches = sampled_;")
planted_bug(loads_no_versions rollout/batches.cpp "versions_[kept] = c_.versions->load(plan_.done, version);" "")

set(planted_sources "")
foreach(source dynamic_sampling.cpp grpo.cpp grpo_minibatches.cpp training/cluster.cpp training/estimators.cpp training/model_selection.cpp training/plan.cpp training/recovery.cpp training/sample_ledger.cpp
    training/weight_stream.cpp training/weight_sync.cpp training/work.cpp rollout/batches.cpp rollout/chunks.cpp
    rollout/evaluation.cpp rollout/finished_samples.cpp rollout/parity_sample.cpp rollout/rollout_pool.cpp rollout/reward_failures.cpp rollout/samples.cpp rollout/sampling.cpp)
  if(NOT source IN_LIST planted_files)
    list(APPEND planted_sources ${PROJECT_SOURCE_DIR}/algorithms/${source})
  endif()
endforeach()
foreach(file IN LISTS planted_files)
  string(MAKE_C_IDENTIFIER "planted_${file}" text)
  # Unchanged files keep their time, so that nothing is compiled again.
  file(CONFIGURE OUTPUT ${planted_folder}/algorithms/${file} CONTENT "#include \"tests/simulator/planted.h\"\n@${text}@" @ONLY)
  if(file MATCHES "[.]cpp$")
    list(APPEND planted_sources ${planted_folder}/algorithms/${file})
  endif()
endforeach()
