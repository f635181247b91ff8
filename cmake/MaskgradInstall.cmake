# What others get: the program, and libmaskgrad (static, or shared with BUILD_SHARED_LIBS) with its headers, for
# find_package(maskgrad) and for pkg-config.
include(CMakePackageConfigHelpers)

set(rooms core ops nn check)
list(TRANSFORM rooms PREPEND lib/)
list(APPEND rooms datasets checkpoints trainers)

add_library(libmaskgrad $<TARGET_OBJECTS:mg_core> $<TARGET_OBJECTS:mg_ops> $<TARGET_OBJECTS:mg_nn>
                        $<TARGET_OBJECTS:mg_check> $<TARGET_OBJECTS:mg_datasets> $<TARGET_OBJECTS:mg_checkpoints>
                        $<TARGET_OBJECTS:mg_trainers>)
set_target_properties(libmaskgrad PROPERTIES OUTPUT_NAME maskgrad EXPORT_NAME maskgrad LINKER_LANGUAGE C
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_link_libraries(libmaskgrad PRIVATE $<BUILD_INTERFACE:maskgrad_build> BLAS::BLAS Threads::Threads csv::csv
    PkgConfig::PCRE2 hdf5::hdf5 PkgConfig::JANSSON ZLIB::ZLIB m)
target_include_directories(libmaskgrad INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(MASKGRAD_DOUBLE)
    target_compile_definitions(libmaskgrad INTERFACE MG_DOUBLE)
    set(maskgrad_cflags -DMG_DOUBLE)
endif()

# A header is for others if it declares something with MG_API, or if such a header includes it.
set(headers "")
foreach(room ${rooms})
    file(GLOB candidates CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${room}/*.h)
    foreach(header ${candidates})
        file(STRINGS ${header} exports REGEX "^MG_API")
        file(STRINGS ${header} includes REGEX "^#include \"")
        if(exports)
            list(APPEND headers ${header})
            string(REGEX MATCHALL "\"[^\"]+\"" includes "${includes}")
            list(APPEND included ${includes})
        endif()
    endforeach()
endforeach()
list(REMOVE_DUPLICATES included)
foreach(name ${included})
    string(REPLACE "\"" "" name ${name})
    foreach(room ${rooms})
        if(EXISTS ${PROJECT_SOURCE_DIR}/${room}/${name})
            list(APPEND headers ${PROJECT_SOURCE_DIR}/${room}/${name})
        endif()
    endforeach()
endforeach()
list(REMOVE_DUPLICATES headers)

set(umbrella "/* All of maskgrad. */\n#ifndef MASKGRAD_H\n#define MASKGRAD_H\n\n")
foreach(header ${headers})
    cmake_path(GET header FILENAME name)
    string(APPEND umbrella "#include \"${name}\"\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/maskgrad.h CONTENT "${umbrella}\n#endif\n")

# Library files as flags, for pkg-config: /usr/lib/libopenblas.so becomes -L/usr/lib -lopenblas.
set(maskgrad_private_libs "")
foreach(library ${BLAS_LIBRARIES} ${HDF5_C_LIBRARY_hdf5} ${CSV_LIBRARY})
    cmake_path(GET library PARENT_PATH folder)
    cmake_path(GET library STEM name)
    string(REGEX REPLACE "^lib" "" name ${name})
    string(APPEND maskgrad_private_libs "-L${folder} -l${name} ")
endforeach()
string(APPEND maskgrad_private_libs "-pthread -lm")
set(maskgrad_is_static TRUE)
if(BUILD_SHARED_LIBS)
    set(maskgrad_is_static FALSE)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/maskgrad)
configure_package_config_file(cmake/maskgrad-config.cmake.in ${PROJECT_BINARY_DIR}/maskgrad-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/maskgrad-config-version.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH maskgrad_pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/maskgrad.pc.in ${PROJECT_BINARY_DIR}/maskgrad.pc @ONLY)

install(TARGETS maskgrad)
install(TARGETS libmaskgrad EXPORT maskgrad-targets)
install(EXPORT maskgrad-targets NAMESPACE maskgrad:: DESTINATION ${package_dir})
install(FILES ${headers} ${PROJECT_BINARY_DIR}/maskgrad.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/maskgrad)
install(FILES ${PROJECT_BINARY_DIR}/maskgrad-config.cmake ${PROJECT_BINARY_DIR}/maskgrad-config-version.cmake
        DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/maskgrad.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY datasets/data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/maskgrad)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
