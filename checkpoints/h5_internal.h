/* Shared by the files of the HDF5 wrapper. */
#ifndef MASKGRAD_H5_INTERNAL_H
#define MASKGRAD_H5_INTERNAL_H

#include "h5.h"

hid_t mg_h5_disk_type(mg_h5_type type);
hid_t mg_h5_memory_type(mg_h5_type type);
/* Why the last HDF5 call failed: the innermost reason. */
typedef struct mg_h5_reason {
    char text[256];
    bool no_memory;
} mg_h5_reason;
mg_h5_reason mg_h5_why(void);
/* MG_ERR_MEMORY if that was the reason; otherwise MG_ERR_FORMAT. The sentence: "PATH is damaged: WHAT (reason)", where
 * `what` says what could not be done. */
mg_status mg_h5_failed(const mg_h5 *h5, const char *format, ...) MG_PRINTF(2, 3);
/* Open, in this process, the file that h5->driver leads to. */
mg_status mg_h5_open_here(mg_h5 *h5);

/* Reading works by questions and answers, so that another process can have the file open: the same function answers
 * there, and an answer is bytes. */
typedef struct mg_h5_answer mg_h5_answer;
struct mg_h5_answer {
    /* Take the next bytes of the answer. */
    mg_status (*take)(mg_h5_answer *answer, const void *bytes, size_t n);
    char *to; /* for as many bytes as `room`; `length` of them have come */
    size_t room, length;
};

typedef struct mg_h5_question mg_h5_question;
struct mg_h5_question {
    mg_status (*reply)(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
    char object[256];
    char name[64]; /* of an attribute */
    mg_h5_number_type number;
    mg_h5_type type;
    int ndim;
    ptrdiff_t dim[MG_MAX_DIM], begin, end;
};

/* A question, and where its answer goes: exactly `size` bytes, or at most `size` if `length` is not NULL. */
typedef struct mg_h5_call {
    mg_h5_question question;
    void *to;
    size_t size;
    size_t *length; /* or NULL */
} mg_h5_call;
/* Whether a received answer is as long as it should be. */
mg_status mg_h5_check_length(const mg_h5 *h5, const mg_h5_call *call, size_t length);

/* The replies: h5_attributes.c, h5_datasets.c. */
mg_status mg_h5_reply_has(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
mg_status mg_h5_reply_has_attribute(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
mg_status mg_h5_reply_count(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
mg_status mg_h5_reply_number(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
mg_status mg_h5_reply_text(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
mg_status mg_h5_reply_length(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
mg_status mg_h5_reply_check(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
mg_status mg_h5_reply_rows(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
mg_status mg_h5_reply_float_rows(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
mg_status mg_h5_reply_list(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);
mg_status mg_h5_reply_describe(const mg_h5 *h5, const mg_h5_question *question, mg_h5_answer *answer);

typedef struct mg_h5_description {
    int type; /* of mg_h5_type_names */
    int ndim;
    ptrdiff_t dim[MG_MAX_DIM];
} mg_h5_description;
enum { MG_H5_TYPE_NAMES = 6 };
extern const char *const mg_h5_type_names[MG_H5_TYPE_NAMES];

/* Whether an object is there, by hard links only. */
bool mg_h5_is_there(const mg_h5 *h5, const char *object);
/* Whether all of a dataset is stored in this file, in a supported way: see docs/hostile-files.md. */
mg_status mg_h5_check_storage(const mg_h5 *h5, const char *object, hid_t set);

/* Whether a child process reads for us: guard.h. */
bool mg_file_guard(void);
/* h5_child.c: a process that reads h5's file and answers. Its first answer is the result of opening the file. */
mg_status mg_h5_child_start(mg_h5 *h5);
/* At most MG_H5_AT_ONCE: all questions go out, which a socket's buffer holds, before the first answer is waited for. */
mg_status mg_h5_child_ask(const mg_h5 *h5, int n, const mg_h5_call *calls);
void mg_h5_child_end(mg_h5 *h5);

#endif
