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
target_link_libraries(libmaskgrad PRIVATE $<BUILD_INTERFACE:maskgrad_build> ${maskgrad_blas} Threads::Threads csv::csv
    PkgConfig::PCRE2 hdf5::hdf5 PkgConfig::JANSSON ZLIB::ZLIB m)
target_include_directories(libmaskgrad INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(MASKGRAD_DOUBLE)
    target_compile_definitions(libmaskgrad INTERFACE MG_DOUBLE)
    set(maskgrad_cflags -DMG_DOUBLE)
endif()

# Two headers, to be read from top to bottom: maskgrad.h for users, and maskgrad_ops.h for those who write operations of
# their own. They are the headers of these folders, one after the other, without what is marked as not installed.
set(user_headers
    lib/core/error lib/core/heap lib/core/rng lib/core/tensor lib/core/tape lib/core/threads lib/ops/mask lib/ops/attention
    lib/ops/ops lib/nn/params lib/nn/adamw lib/nn/gpt_config lib/nn/gpt lib/nn/sampler lib/nn/generator lib/check/gradcheck
    lib/check/causality lib/check/influence lib/check/audit datasets/tokenizer datasets/grammar datasets/corpus
    checkpoints/guard checkpoints/checkpoint checkpoints/params_file checkpoints/weight checkpoints/gpt2_import
    trainers/evaluation trainers/train_options trainers/trainer trainers/generate_text)
set(operation_headers lib/core/operation lib/core/parallel lib/core/gemm)

function(maskgrad_header name comment include)
    set(system "")
    set(body "")
    set(macros "\n/* ---- Whose line a failure names: the same functions as macros ---- */\n\n")
    foreach(header ${ARGN})
        file(READ ${PROJECT_SOURCE_DIR}/${header}.h text)
        string(REGEX MATCHALL "#include <[^>]+>" found "${text}")
        list(APPEND system ${found})
        string(REGEX REPLACE "#include [^\n]*\n" "" text "${text}")
        string(FIND "${text}" "/* ---- Not installed" begin)
        if(NOT begin EQUAL -1) # up to the macros that name the caller's line, or to the guard's end
            string(SUBSTRING "${text}" ${begin} -1 rest)
            string(FIND "${rest}" "\n#ifndef MG_LIBRARY" end)
            if(end EQUAL -1)
                string(FIND "${rest}" "\n#endif" end REVERSE)
            endif()
            string(SUBSTRING "${text}" 0 ${begin} text)
            string(SUBSTRING "${rest}" ${end} -1 rest)
            string(APPEND text "${rest}")
        endif()
        string(FIND "${text}" "#ifndef MG_LIBRARY /* whose line" begin)
        if(NOT begin EQUAL -1) # to the header's end: nothing that a reader needs
            string(SUBSTRING "${text}" ${begin} -1 rest)
            string(FIND "${rest}" "\n#endif\n" end)
            math(EXPR end "${end} + 8")
            string(SUBSTRING "${rest}" 0 ${end} macros_here)
            string(SUBSTRING "${rest}" ${end} -1 rest)
            string(SUBSTRING "${text}" 0 ${begin} text)
            string(APPEND text "${rest}")
            string(APPEND macros "${macros_here}")
        endif()
        string(APPEND body "\n${text}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header}.h)
    endforeach()
    list(REMOVE_DUPLICATES system)
    list(SORT system)
    list(JOIN system "\n" system)
    string(TOUPPER "installed_${name}_h" guard)
    string(REGEX REPLACE "\n\n\n+" "\n\n" body "${body}")
    file(WRITE ${PROJECT_BINARY_DIR}/include/${name}.h "/* ${comment} */\n#ifndef ${guard}\n#define ${guard}\n\n${include}${system}\n\n"
         "#ifdef __cplusplus\nextern \"C\" {\n#endif\n${body}${macros}\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
endfunction()
maskgrad_header(maskgrad "maskgrad, for its users." "" ${user_headers})
maskgrad_header(maskgrad_ops "maskgrad, for writers of operations." "#include \"maskgrad.h\"\n" ${operation_headers})

# What others can link is in one of the two.
foreach(room ${rooms})
    file(GLOB candidates CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/${room}/*.h)
    foreach(header ${candidates})
        file(STRINGS ${PROJECT_SOURCE_DIR}/${header} exports REGEX "^MG_API")
        string(REGEX REPLACE "\\.h$" "" header ${header})
        if(exports AND NOT header IN_LIST user_headers AND NOT header IN_LIST operation_headers)
            message(FATAL_ERROR "${header}.h declares with MG_API, but is in neither list of cmake/MaskgradInstall.cmake")
        endif()
    endforeach()
endforeach()

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
install(FILES ${PROJECT_BINARY_DIR}/include/maskgrad.h ${PROJECT_BINARY_DIR}/include/maskgrad_ops.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/maskgrad)
install(FILES ${PROJECT_BINARY_DIR}/maskgrad-config.cmake ${PROJECT_BINARY_DIR}/maskgrad-config-version.cmake
        DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/maskgrad.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY datasets/data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/maskgrad)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY adapters DESTINATION ${CMAKE_INSTALL_DATADIR}/maskgrad FILES_MATCHING PATTERN "*.py" PATTERN "*.c")
