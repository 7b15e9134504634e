# drover_module(<name> SOURCES ... HEADERS ... TESTS ... USES ... LIBRARIES ...)
#
# A module is one folder under src/: a library, its tests, and the modules it may use (USES) together with the
# outside libraries it needs (LIBRARIES). Three things keep it honest, none of them by review:
#  - <name>_links fails to link if the module uses a symbol of a module it did not declare;
#  - all_verify_interface_header_sets fails if a header does not compile alone;
#  - tests/modules_test.cc fails if an #include crosses a boundary drawn in ARCHITECTURE.md.
function(drover_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HEADERS;TESTS;USES;LIBRARIES")

  add_library(${name} STATIC ${arg_SOURCES})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${arg_HEADERS})
  target_link_libraries(${name} PUBLIC ${arg_USES} ${arg_LIBRARIES} PRIVATE project_flags)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON VERIFY_INTERFACE_HEADER_SETS ON)

  add_executable(${name}_links ${PROJECT_SOURCE_DIR}/cmake/empty_main.cc)
  target_link_libraries(${name}_links PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${name}>" project_flags)

  if(arg_TESTS AND DROVER_TESTS)
    add_executable(${name}_test ${arg_TESTS})
    target_link_libraries(${name}_test PRIVATE ${name} project_flags test_flags GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
  endif()
endfunction()
