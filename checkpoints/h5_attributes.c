/* Replies about objects and their attributes. */
#include "h5_internal.h"

#include <stdio.h>
#include <string.h>

/* H5Lexists fails when a group on the way is missing, so each level is checked. Only hard links count, since a soft or
 * an external one could lead anywhere. */
bool mg_h5_is_there(const mg_h5 *h5, const char *object) {
    char prefix[sizeof((mg_h5_question *)0)->object];
    for (const char *slash = object; slash; slash = strchr(slash + 1, '/')) {
        const char *end = strchr(slash + 1, '/');
        size_t length = end ? (size_t)(end - object) : strlen(object);
        memcpy(prefix, object, length);
        prefix[length] = '\0';
        if (strcmp(prefix, "/") == 0) continue;
        H5L_info_t link;
        if (H5Lexists(h5->file, prefix, H5P_DEFAULT) <= 0) return false;
        if (H5Lget_info(h5->file, prefix, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) return false;
    }
    return true;
}

static bool has_attribute(const mg_h5 *h5, const char *object, const char *name) {
    return mg_h5_is_there(h5, object) && H5Aexists_by_name(h5->file, object, name, H5P_DEFAULT) > 0;
}

static mg_status tell(mg_h5_answer *answer, bool yes) {
    return answer->take(answer, &(unsigned char){yes}, 1);
}

mg_status mg_h5_reply_has(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    return tell(answer, mg_h5_is_there(h5, q->object));
}

mg_status mg_h5_reply_has_attribute(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    return tell(answer, has_attribute(h5, q->object, q->name));
}

mg_status mg_h5_reply_count(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    H5G_info_t info;
    int64_t count = -1;
    if (mg_h5_is_there(h5, q->object) && H5Gget_info_by_name(h5->file, q->object, &info, H5P_DEFAULT) >= 0)
        count = info.nlinks < INT64_MAX ? (int64_t)info.nlinks : INT64_MAX;
    return answer->take(answer, &count, sizeof count);
}

/* An attribute that holds one element of the class, or an error. */
static mg_status open_attribute(const mg_h5 *h5, const mg_h5_question *q, H5T_class_t class, const char *class_name,
                                hid_t *attribute, hid_t *type) {
    if (!has_attribute(h5, q->object, q->name)) return mg_h5_error(h5, "%s has no attribute '%s'", q->object, q->name);
    *attribute = H5Aopen_by_name(h5->file, q->object, q->name, H5P_DEFAULT, H5P_DEFAULT);
    if (*attribute < 0) return mg_h5_failed(h5, "the attribute '%s' of %s is damaged", q->name, q->object);
    hid_t space = H5Aget_space(*attribute);
    *type = H5Aget_type(*attribute);
    H5T_class_t found = H5Tget_class(*type);
    bool fits = H5Sget_simple_extent_npoints(space) == 1 &&
                (found == class || (class == H5T_FLOAT && found == H5T_INTEGER) ||
                 (class == H5T_INTEGER && found == H5T_ENUM)); /* h5py writes a bool as an enumeration */
    H5Sclose(space);
    if (fits) return MG_OK;
    H5Tclose(*type);
    H5Aclose(*attribute);
    return mg_h5_error(h5, "the attribute '%s' of %s must be one %s", q->name, q->object, class_name);
}

static mg_status end_attribute(const mg_h5 *h5, const mg_h5_question *q, herr_t read, hid_t attribute, hid_t type) {
    mg_status status = read >= 0 ? MG_OK
                                 : mg_h5_failed(h5, "the attribute '%s' of %s cannot be read", q->name, q->object);
    H5Tclose(type);
    H5Aclose(attribute);
    return status;
}

mg_status mg_h5_reply_number(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    bool real = q->number == MG_H5_DOUBLE;
    uint64_t value = 0; /* or another type of the same size */
    hid_t type, attribute,
        memory = real                     ? H5T_NATIVE_DOUBLE
                 : q->number == MG_H5_INT ? H5T_NATIVE_INT64
                                          : H5T_NATIVE_UINT64;
    mg_status status = open_attribute(h5, q, real ? H5T_FLOAT : H5T_INTEGER, real ? "number" : "integer", &attribute,
                                      &type);
    if (status != MG_OK) return status;
    status = end_attribute(h5, q, H5Aread(attribute, memory, &value), attribute, type);
    return status == MG_OK ? answer->take(answer, &value, sizeof value) : status;
}

/* ---- Texts ---- */

static herr_t read_variable_text(hid_t attribute, hid_t type, char *text, size_t size) {
    char *read = NULL;
    hid_t memory = H5Tcopy(H5T_C_S1);
    H5Tset_size(memory, H5T_VARIABLE);
    H5Tset_cset(memory, H5Tget_cset(type));
    herr_t result = H5Aread(attribute, memory, &read);
    H5Tclose(memory);
    if (result < 0) return result;
    snprintf(text, size, "%s", read ? read : "");
    H5free_memory(read);
    return 0;
}

static herr_t read_fixed_text(hid_t attribute, hid_t type, char *text, size_t size) {
    hid_t memory = H5Tcopy(H5T_C_S1);
    H5Tset_size(memory, size);
    H5Tset_strpad(memory, H5T_STR_NULLTERM);
    H5Tset_cset(memory, H5Tget_cset(type));
    herr_t result = H5Aread(attribute, memory, text);
    H5Tclose(memory);
    text[size - 1] = '\0';
    return result;
}

mg_status mg_h5_reply_text(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    char text[256] = "";
    hid_t type, attribute;
    mg_status status = open_attribute(h5, q, H5T_STRING, "string", &attribute, &type);
    if (status != MG_OK) return status;
    herr_t read = (H5Tis_variable_str(type) > 0 ? read_variable_text : read_fixed_text)(attribute, type, text,
                                                                                        sizeof text);
    status = end_attribute(h5, q, read, attribute, type);
    return status == MG_OK ? answer->take(answer, text, strnlen(text, (size_t)q->end)) : status;
}
