# The libraries we stand on, the warnings, and maskgrad_library(), which makes one folder a target.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_FLAGS_RELEASE "-O3 -g") # assertions of ours stay: they are not assert()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
find_path(CSV_INCLUDE_DIR csv.h REQUIRED)
find_library(CSV_LIBRARY csv REQUIRED)

# What lib/core computes with: arithmetic.h.
if(MASKGRAD_ARITHMETIC STREQUAL "openblas")
    set(BLA_VENDOR OpenBLAS)
    find_package(BLAS REQUIRED)
    find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
    include(CheckSymbolExists)
    set(CMAKE_REQUIRED_LIBRARIES BLAS::BLAS)
    check_symbol_exists(openblas_get_corename "cblas.h" MASKGRAD_HAVE_OPENBLAS)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(NOT MASKGRAD_HAVE_OPENBLAS)
        message(FATAL_ERROR "cblas.h or the BLAS found (${BLAS_LIBRARIES}) is not OpenBLAS's: "
                            "install libopenblas-openmp-dev, and see update-alternatives")
    endif()
    add_library(Random123::Random123 INTERFACE IMPORTED)
    target_include_directories(Random123::Random123 INTERFACE ${RANDOM123_INCLUDE_DIR})
    set(maskgrad_blas BLAS::BLAS) # what a program that links libmaskgrad needs, too
    set(maskgrad_arithmetic ${maskgrad_blas} Random123::Random123)
elseif(NOT MASKGRAD_ARITHMETIC STREQUAL "portable")
    message(FATAL_ERROR "MASKGRAD_ARITHMETIC is '${MASKGRAD_ARITHMETIC}'; it must be openblas or portable")
endif()

set(maskgrad_mpi "")
if(MASKGRAD_MPI)
    find_package(MPI REQUIRED COMPONENTS C)
    set(maskgrad_mpi MPI::MPI_C)
endif()

add_library(csv::csv INTERFACE IMPORTED)
target_include_directories(csv::csv INTERFACE ${CSV_INCLUDE_DIR})
target_link_libraries(csv::csv INTERFACE ${CSV_LIBRARY})
add_library(jansson::jansson ALIAS PkgConfig::JANSSON)
add_library(PCRE2::PCRE2 ALIAS PkgConfig::PCRE2)
set_property(TARGET hdf5::hdf5 APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS H5_USE_110_API)

add_library(maskgrad_warnings INTERFACE)
target_compile_options(maskgrad_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Wno-unknown-pragmas $<$<BOOL:${MASKGRAD_WERROR}>:-Werror>
    # clang: a simd loop that it leaves scalar is slower, not wrong; the fields that a designated initializer leaves out are 0
    $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed -Wno-missing-field-initializers>)

# How everything of ours is built: never -ffast-math, since -inf and NaN mean something here. Nobody reads errno after sqrt,
# nor the flags that floating-point operations raise: without them sqrt is an instruction, and a loop with a condition in
# it becomes vector code without AVX-512, too.
add_library(maskgrad_build INTERFACE)
target_compile_options(maskgrad_build INTERFACE -fno-math-errno -fno-trapping-math)
if(MASKGRAD_ARITHMETIC STREQUAL "portable") # no sum in another order, nothing rounded once instead of twice
    target_compile_options(maskgrad_build INTERFACE -ffp-contract=off)
    target_compile_definitions(maskgrad_build INTERFACE MG_PORTABLE)
else()
    target_compile_options(maskgrad_build INTERFACE -ffp-contract=fast -fopenmp-simd)
endif()
target_compile_definitions(maskgrad_build INTERFACE _POSIX_C_SOURCE=200809L MASKGRAD_VERSION="${PROJECT_VERSION}"
    $<$<BOOL:${MASKGRAD_HOSTILE}>:MG_HOSTILE> $<$<BOOL:${MASKGRAD_SANITIZE}>:MG_NO_CLONES>)
if(MASKGRAD_SANITIZE)
    target_compile_options(maskgrad_build INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                                                    -fno-omit-frame-pointer)
    target_link_options(maskgrad_build INTERFACE -fsanitize=address,undefined)
endif()
if(MASKGRAD_SANITIZE_THREADS)
    target_compile_definitions(maskgrad_build INTERFACE MG_NO_CLONES)
    target_compile_options(maskgrad_build INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
    target_link_options(maskgrad_build INTERFACE -fsanitize=thread)
endif()
if(MASKGRAD_FUZZ)
    target_compile_options(maskgrad_build INTERFACE -fsanitize=fuzzer-no-link)
endif()

# maskgrad_library(NAME DIR folder [USES targets below] [SYSTEM libraries that only this folder includes])
# makes NAME of the .c files in the folder (of labs, in the folders inside it too), and NAME_f64, the same in double precision.
# A style sheet or script in it becomes a string: report.css is maskgrad_report_css.
function(maskgrad_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "DIR" "USES;SYSTEM")
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${arg_DIR}/*.c)
    if(arg_DIR STREQUAL "experiments/labs") # a lab is one file, or one folder
        file(GLOB inner CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${arg_DIR}/*/*.c)
        list(APPEND sources ${inner})
    elseif(arg_DIR STREQUAL "trainers/launch" AND MASKGRAD_MPI)
        list(FILTER sources EXCLUDE REGEX "/alone\\.c$")
        file(GLOB inner CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${arg_DIR}/mpi/*.c)
        list(APPEND sources ${inner})
    elseif(arg_DIR STREQUAL "lib/core" AND MASKGRAD_ARITHMETIC STREQUAL "portable")
        list(FILTER sources EXCLUDE REGEX "/(gemm|random123)\\.c$")
        file(GLOB inner CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/core/portable/*.c)
        list(APPEND sources ${inner})
    endif()
    file(GLOB texts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${arg_DIR}/*.css ${PROJECT_SOURCE_DIR}/${arg_DIR}/*.js)
    foreach(text ${texts})
        get_filename_component(file ${text} NAME)
        string(MAKE_C_IDENTIFIER maskgrad_${file} symbol)
        add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/text/${file}.c DEPENDS ${text} cmake/EmbedText.cmake VERBATIM
            COMMAND ${CMAKE_COMMAND} -D FROM=${text} -D TO=${PROJECT_BINARY_DIR}/text/${file}.c -D NAME=${symbol}
                    -P ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake)
        list(APPEND sources ${PROJECT_BINARY_DIR}/text/${file}.c)
    endforeach()
    if(NOT sources)
        file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/empty.c CONTENT "typedef int maskgrad_empty;\n")
        set(sources ${PROJECT_BINARY_DIR}/empty.c)
    endif()
    foreach(suffix "" _f64)
        add_library(${name}${suffix} STATIC ${sources})
        target_include_directories(${name}${suffix} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${arg_DIR}>)
        if(arg_DIR STREQUAL "lib/core" AND MASKGRAD_ARITHMETIC STREQUAL "portable")
            target_include_directories(${name}${suffix} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/core/portable>)
        endif()
        target_link_libraries(${name}${suffix} PUBLIC maskgrad_build PRIVATE maskgrad_warnings ${arg_SYSTEM})
        foreach(used ${arg_USES})
            target_link_libraries(${name}${suffix} PUBLIC ${used}${suffix})
        endforeach()
        if(NOT arg_DIR MATCHES "^experiments")
            target_compile_definitions(${name}${suffix} PRIVATE MG_LIBRARY) # failures name the caller's line, not ours
        endif()
        if(suffix STREQUAL "_f64" OR MASKGRAD_DOUBLE)
            target_compile_definitions(${name}${suffix} PUBLIC MG_DOUBLE)
        endif()
        if(suffix STREQUAL "_f64")
            set_target_properties(${name}${suffix} PROPERTIES EXCLUDE_FROM_ALL ON)
        endif()
    endforeach()
endfunction()
