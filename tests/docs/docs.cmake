# The worked examples of the documentation as test programs. extract.py explains how a page names its blocks.

# troupe_docs_example(reward_rule PAGE docs/adding-a-reward-rule.md FILES actors/roles/rules/word_limit.h actors/roles/rules/rule.cpp)
# extracts the new and the changed files of a page into BUILD/docs/NAME when the page, or a file that it changes, has changed. FILES are
# all files that the page has blocks of.
function(troupe_docs_example name)
  cmake_parse_arguments(ARG "" "PAGE" "FILES" ${ARGN})
  set(extract ${PROJECT_SOURCE_DIR}/tests/docs/extract.py)
  set(inputs ${PROJECT_SOURCE_DIR}/${ARG_PAGE} ${extract})
  set(outputs)
  foreach(file IN LISTS ARG_FILES)
    list(APPEND outputs ${CMAKE_BINARY_DIR}/docs/${name}/${file})
    if(EXISTS ${PROJECT_SOURCE_DIR}/${file})
      list(APPEND inputs ${PROJECT_SOURCE_DIR}/${file})
    endif()
  endforeach()
  add_custom_command(OUTPUT ${outputs} DEPENDS ${inputs} VERBATIM COMMENT "Extracting ${ARG_PAGE}"
    COMMAND python3 ${extract} write ${PROJECT_SOURCE_DIR} ${ARG_PAGE} ${CMAKE_BINARY_DIR}/docs/${name} ${ARG_FILES})
  add_custom_target(docs_${name}_files DEPENDS ${outputs})
  set_target_properties(docs_${name}_files PROPERTIES TROUPE_FILES "${ARG_FILES}")
endfunction()

# The path of a source: the example's, if the example has that file, or the tree's.
function(troupe_docs_source name path out)
  get_target_property(files docs_${name}_files TROUPE_FILES)
  if(path IN_LIST files)
    set(${out} ${CMAKE_BINARY_DIR}/docs/${name}/${path} PARENT_SCOPE)
  else()
    set(${out} ${PROJECT_SOURCE_DIR}/${path} PARENT_SCOPE)
  endif()
endfunction()

# The target sees the files of the example in place of the tree's.
function(troupe_docs_target name target)
  add_dependencies(${target} docs_${name}_files)
  target_include_directories(${target} BEFORE PRIVATE ${CMAKE_BINARY_DIR}/docs/${name})
endfunction()

# troupe_docs_library(reward_rule troupe_actors_rules NEW actors/roles/rules/word_limit.cpp)
# makes docs_reward_rule_troupe_actors_rules: the objects of a library of the tree, compiled with the files of the example in place of the
# tree's and with its NEW sources. What it defines, a test links in place of the tree's library. Every library that includes a header
# which the example changes belongs to it, unless the change only adds declarations.
function(troupe_docs_library name library)
  cmake_parse_arguments(ARG "" "" "NEW" ${ARGN})
  get_target_property(folder ${library} SOURCE_DIR)
  get_target_property(sources ${library} SOURCES)
  get_target_property(links ${library} LINK_LIBRARIES)
  set(target docs_${name}_${library})
  add_library(${target} OBJECT)
  foreach(source IN LISTS sources)
    get_source_file_property(options ${folder}/${source} DIRECTORY ${folder} COMPILE_OPTIONS)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder})
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
    troupe_docs_source(${name} ${path} source)
    target_sources(${target} PRIVATE ${source})
    if(options)
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${options}")
    endif()
  endforeach()
  foreach(path IN LISTS ARG_NEW)
    troupe_docs_source(${name} ${path} source)
    target_sources(${target} PRIVATE ${source})
  endforeach()
  troupe_unity(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  target_link_libraries(${target} PRIVATE ${links} troupe_test_flags)
  troupe_docs_target(${name} ${target})
endfunction()

# troupe_docs_test(reward_rule SOURCES tests/actors/rules/word_limit_test.cpp LIBRARIES troupe_actors_rules LINKS troupe_engine_base)
# makes the test program docs_reward_rule_test of SOURCES, files of the example or of the tree, and of the LIBRARIES that
# troupe_docs_library has made. LINKS are libraries of the tree.
function(troupe_docs_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES;LINKS" ${ARGN})
  set(sources)
  foreach(path IN LISTS ARG_SOURCES)
    troupe_docs_source(${name} ${path} source)
    list(APPEND sources ${source})
  endforeach()
  list(TRANSFORM ARG_LIBRARIES PREPEND docs_${name}_)
  troupe_test(docs_${name} SOURCES ${sources} LINKS ${ARG_LIBRARIES} ${ARG_LINKS} LABELS docs)
  troupe_docs_target(${name} docs_${name}_test)
endfunction()
