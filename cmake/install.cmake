# cmake --install: bin/troupe, its modules and Arrow's libraries in lib/troupe, man pages, completions of shells, documentation and the
# example in share. Components: troupe (everything that troupe builds, and Arrow), bundle (every other library but glibc and MPI, for the
# relocatable archive). cpack makes a .deb of the first and a .tar.gz of both (cmake/package.sh).
set(troupe_lib_dir lib/troupe)
set(troupe_doc_dir share/doc/troupe)

# DT_RPATH, which holds for the dependencies of dependencies too; DT_RUNPATH does not.
target_link_options(troupe PRIVATE -Wl,--disable-new-dtags)
troupe_rpath(troupe "$ORIGIN/../${troupe_lib_dir}")
install(TARGETS troupe RUNTIME DESTINATION bin COMPONENT troupe)
foreach(module IN ITEMS troupe_mpi troupe_parquet)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${troupe_lib_dir} COMPONENT troupe)
  endif()
endforeach()
if(TARGET troupe_parquet)
  install(FILES ${troupe_libarrow} ${troupe_libparquet} DESTINATION ${troupe_lib_dir} COMPONENT troupe)
  file(GLOB troupe_arrow_licences ${troupe_arrow_dir}/../pyarrow-*.dist-info/LICENSE.txt ${troupe_arrow_dir}/../pyarrow-*.dist-info/NOTICE.txt)
  install(FILES ${troupe_arrow_licences} DESTINATION ${troupe_doc_dir}/arrow COMPONENT troupe)
endif()

# Links with the names of Megatron's scripts, which are put in front of PATH.
install(CODE "
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/troupe/megatron\")
  file(MAKE_DIRECTORY \"\${folder}\")
  foreach(name ${troupe_script_names})
    file(CREATE_LINK ../../../bin/troupe \"\${folder}/\${name}\" SYMBOLIC)
  endforeach()" COMPONENT troupe)

install(DIRECTORY launch/quickstart DESTINATION share/troupe COMPONENT troupe PATTERN run.sh EXCLUDE)
install(DIRECTORY launch/examples DESTINATION share/troupe COMPONENT troupe)
install(FILES actors/roles/rules/python/reward_function.py DESTINATION share/troupe COMPONENT troupe)
install(DIRECTORY docs/ DESTINATION ${troupe_doc_dir} COMPONENT troupe PATTERN development EXCLUDE)
install(FILES benchmarks/README.md benchmarks/results.md DESTINATION ${troupe_doc_dir}/benchmarks COMPONENT troupe)
install(FILES CHANGELOG.md SECURITY.md DESTINATION ${troupe_doc_dir} COMPONENT troupe)
install(FILES LICENSE DESTINATION ${troupe_doc_dir} RENAME copyright COMPONENT troupe)

install(CODE "
  set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  set(doc_dir \"${troupe_doc_dir}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/installed_links.cmake\")" COMPONENT troupe)

# Man pages and completions are printed by the program from its option tables.
install(CODE "
  set(program \"$<TARGET_FILE:troupe>\")
  set(pages \"${CMAKE_BINARY_DIR}/pages\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/write_pages.cmake\")" COMPONENT troupe)
install(DIRECTORY ${CMAKE_BINARY_DIR}/pages/ DESTINATION share COMPONENT troupe)

install(CODE "
  set(program \"$<TARGET_FILE:troupe>\")
  set(modules \"$<$<TARGET_EXISTS:troupe_parquet>:$<TARGET_FILE:troupe_parquet>>\")
  set(private_dir \"${troupe_arrow_dir}\")
  set(library_dir \"${troupe_lib_dir}\")
  set(doc_dir \"${troupe_doc_dir}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/bundle_libraries.cmake\")" COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME troupe)
set(CPACK_PACKAGE_VENDOR "troupe")
set(CPACK_PACKAGE_CONTACT "troupe developers <troupe@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Training and alignment of language models, without Python")
set(CPACK_PACKAGE_DESCRIPTION "Supervised fine-tuning, preference optimization, reward models, PPO and GRPO on CPUs,
in one process or as groups of processes, from Hugging Face checkpoints and data sets.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_components.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${troupe_arrow_dir})
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
include(CPack)
