# What a package has besides what is installed from the tree: man pages and shell completion, which the program itself
# describes (cmake --build . --target manuals), and what Debian asks of a package. Then: cpack -G DEB, cpack -G TGZ.
find_program(HELP2MAN help2man)
set(extras ${PROJECT_BINARY_DIR}/extras)
set(completions ${extras}/maskgrad ${extras}/_maskgrad ${extras}/maskgrad.fish)
foreach(shell bash zsh fish)
    list(POP_FRONT completions file)
    list(APPEND completions ${file})
    add_custom_command(OUTPUT ${file} DEPENDS maskgrad ${PROJECT_SOURCE_DIR}/scripts/completion.sh VERBATIM
        COMMAND ${CMAKE_COMMAND} -E make_directory ${extras}
        COMMAND bash -c "\"$0\" \"$1\" \"$2\" >\"$3\"" ${PROJECT_SOURCE_DIR}/scripts/completion.sh ${shell}
                $<TARGET_FILE:maskgrad> ${file})
endforeach()
set(manuals "")
if(HELP2MAN)
    set(manuals ${extras}/man/maskgrad.1.gz)
    add_custom_command(OUTPUT ${manuals} DEPENDS maskgrad ${PROJECT_SOURCE_DIR}/scripts/manuals.sh VERBATIM
        COMMAND ${PROJECT_SOURCE_DIR}/scripts/manuals.sh $<TARGET_FILE:maskgrad> ${extras}/man)
else()
    message(STATUS "help2man was not found: there will be no man pages")
endif()
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_CONTACT "The maskgrad authors <maskgrad@users.noreply.github.com>")
string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC) # or that of SOURCE_DATE_EPOCH
file(WRITE ${extras}/changelog.Debian
    "maskgrad (${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
    "  * Version ${PROJECT_VERSION}: see changelog.gz.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${today}\n")
set(changes "")
foreach(pair changelog:${PROJECT_SOURCE_DIR}/CHANGELOG.md changelog.Debian:${extras}/changelog.Debian)
    string(REGEX MATCH "^([^:]+):(.+)$" pair ${pair})
    set(source ${CMAKE_MATCH_2})
    set(zipped ${extras}/${CMAKE_MATCH_1}.gz)
    list(APPEND changes ${zipped})
    add_custom_command(OUTPUT ${zipped} DEPENDS ${source} VERBATIM
        COMMAND bash -c "gzip -9n <\"$0\" >\"$1\"" ${source} ${zipped})
endforeach()
add_custom_target(manuals DEPENDS ${completions} ${manuals} ${changes})

install(FILES ${extras}/maskgrad DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
install(FILES ${extras}/_maskgrad DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions OPTIONAL)
install(FILES ${extras}/maskgrad.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
install(DIRECTORY ${extras}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
install(FILES ${changes} DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)

file(READ LICENSE license)
string(REGEX REPLACE "^.*(Copyright[^\n]*).*$" "\\1" owner "${license}")
string(REGEX REPLACE "^[Cc]opyright *(\\([cC]\\))? *" "" owner "${owner}")
string(REGEX REPLACE "\n" "\n " license "${license}")
string(REGEX REPLACE "\n \n" "\n .\n" license "${license}")
string(STRIP "${license}" license)
file(WRITE ${extras}/copyright
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: maskgrad\n\n"
    "Files: *\nCopyright: ${owner}\nLicense: Expat\n ${license}\n")
install(FILES ${extras}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_PACKAGE_NAME maskgrad)
set(CPACK_PACKAGE_VENDOR maskgrad)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tiny GPT, trained with and without the causal mask")
set(CPACK_PACKAGE_DESCRIPTION
"maskgrad is a small reverse-mode autograd library in C with a tiny GPT, and a
command-line lab that shows what the causal mask does: each claim of the lesson
is a number beside the value that theory predicts.
.
This package holds the program, its labs, the shipped grammars, the library
with its headers, and the documentation.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS TRUE)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# Labs draw with gnuplot, and do without it with a word. Programs that link the library need what it links.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox | gnuplot, fonts-dejavu-core")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, libopenblas-dev, libhdf5-dev, libjansson-dev, libcsv-dev, libpcre2-dev, zlib1g-dev")
include(CPack)
