# torch_module(<name> SOURCES ... USES ...)
#
# What needs libtorch is a module of its own, lib<name>.so beside the program, which loads it when it is needed
# (core/program_module.h). Only its SOURCES see libtorch. They are compiled once, as <name>_objects, which tests may link.
function(torch_module name)
  # In a function, so that the variables libtorch's package sets stay here.
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES")
  if(NOT DROVER_TORCH)
    return()
  endif()
  find_package(Torch REQUIRED)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND Torch_VERSION VERSION_LESS 2)
    # Its headers hold vectors of an incomplete type, which Clang refuses in C++20 and GCC does not.
    message(STATUS "Clang cannot read libtorch ${Torch_VERSION}'s headers as C++20: this tree has no ${name}")
    return()
  endif()
  add_library(${name}_objects OBJECT ${arg_SOURCES})
  target_link_libraries(${name}_objects PUBLIC ${arg_USES} ${TORCH_LIBRARIES} PRIVATE project_flags)
  set_target_properties(${name}_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  add_library(${name} MODULE)
  target_link_libraries(${name} PRIVATE ${name}_objects)
  # Our own modules are inside as static libraries; nothing of them but the entry may be seen from outside.
  target_link_options(${name} PRIVATE LINKER:--exclude-libs,ALL)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS ${name} LIBRARY DESTINATION lib/drover)
endfunction()
