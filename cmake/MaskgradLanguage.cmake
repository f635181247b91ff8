# The catalogs: po/LANGUAGE.po becomes locale/LANGUAGE/LC_MESSAGES/maskgrad.mo, beside the program and installed.
# `cmake --build --preset dev --target po` brings the new sentences of the source into po/*.po; `pot` makes only the
# template. Without gettext's tools the program speaks English.
find_program(MSGFMT msgfmt)
find_program(XGETTEXT xgettext)
set(template ${PROJECT_BINARY_DIR}/maskgrad.pot)
file(GLOB catalogs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/po/*.po)

if(MSGFMT)
    foreach(catalog ${catalogs})
        cmake_path(GET catalog STEM language)
        set(compiled locale/${language}/LC_MESSAGES/maskgrad.mo)
        add_custom_command(OUTPUT ${compiled}
            COMMAND ${CMAKE_COMMAND} -E make_directory locale/${language}/LC_MESSAGES
            COMMAND ${MSGFMT} --check-format --check-domain -o ${compiled} ${catalog}
            DEPENDS ${catalog} VERBATIM)
        list(APPEND all_compiled ${compiled})
        install(FILES ${PROJECT_BINARY_DIR}/${compiled} DESTINATION ${CMAKE_INSTALL_LOCALEDIR}/${language}/LC_MESSAGES)
    endforeach()
    add_custom_target(catalogs ALL DEPENDS ${all_compiled})
endif()
if(XGETTEXT)
    add_custom_target(pot COMMAND ${PROJECT_SOURCE_DIR}/po/make-pot.sh ${PROJECT_SOURCE_DIR} ${template} VERBATIM)
    add_custom_target(po COMMAND ${PROJECT_SOURCE_DIR}/po/merge.sh ${template} ${catalogs} VERBATIM)
    add_dependencies(po pot)
endif()
