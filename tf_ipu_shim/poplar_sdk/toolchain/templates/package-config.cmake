# The Poplar graph API on the CPU: a target for each library, and POPLAR_INCLUDE_DIRS.
get_filename_component(POPLAR_ROOT "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(POPLAR_INCLUDE_DIRS "${POPLAR_ROOT}/include")
foreach(name IN ITEMS @{names})
  if(NOT TARGET ${name})
    add_library(${name} SHARED IMPORTED)
    set_target_properties(${name} PROPERTIES
      IMPORTED_LOCATION "${POPLAR_ROOT}/lib/lib${name}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${POPLAR_ROOT}/include")
  endif()
endforeach()
set(POPLAR_LIBRARIES @{names})
set(@{package}_LIBRARIES @{names})
set(@{package}_INCLUDE_DIRS "${POPLAR_ROOT}/include")
