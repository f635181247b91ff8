/* Which language, its catalog, and looking up in it. The only user of libintl. */
#define _GNU_SOURCE /* strerrordesc_np */
#include "language.h"
#include "catalog.h"

#include <langinfo.h>
#include <libintl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define DOMAIN "maskgrad"

static char language[32] = "en";
static bool ascii; /* the terminal shows nothing else */

/* ---- Which one ---- */

/* What the environment asks for, as GNU gettext reads it, but LANGUAGE also counts where no locale is set at all: a
 * bare system has only C.UTF-8. */
static const char *asked_by_environment(void) {
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    const char *locale = NULL, *list = getenv("LANGUAGE");
    for (int i = 0; i < 3 && !locale; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) locale = value;
    }
    if (locale && (strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0)) return "en";
    if (list && *list) return list;
    return locale ? locale : "en";
}

/* "pt-BR", "pt_BR.UTF-8" and "pt" are pt_BR; the result is the folder's name. */
static void folder_name(const char *asked, size_t length, char *name, size_t size) {
    static const char *const whole[][2] = {{"pt", "pt_BR"}};
    size_t n = strcspn(asked, ".@:");
    if (n > length) n = length;
    if (n >= size) n = size - 1;
    memcpy(name, asked, n);
    name[n] = '\0';
    for (char *c = name; *c; c++)
        if (*c == '-') *c = '_';
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strncmp(name, whole[i][0], 2) == 0 && (name[2] == '_' || !name[2])) snprintf(name, size, "%s", whole[i][1]);
}

static const char *find_catalog(const char *name, int n, const char *const *folders) {
    for (int i = 0; i < n && !strchr(name, '/') && *name; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s/LC_MESSAGES/" DOMAIN ".mo", folders[i], name);
        if (length < (int)sizeof path && mg_catalog_is_whole(path)) return folders[i];
    }
    return NULL;
}

static bool is_english(const char *name) {
    return strcmp(name, "en") == 0 || strncmp(name, "en_", 3) == 0 || strcmp(name, "C") == 0 ||
           strcmp(name, "POSIX") == 0;
}

/* ---- gettext ---- */

/* glibc looks nothing up in the locale C; where no other is installed, C.UTF-8 is. */
static bool use(const char *name, const char *folder) {
    static const char *const locales[] = {"", "C.UTF-8", "C.utf8", "en_US.UTF-8", "pt_BR.UTF-8"};
    bool any = false;
    for (size_t i = 0; i < sizeof locales / sizeof *locales && !any; i++) {
        const char *set = setlocale(LC_MESSAGES, locales[i]);
        any = set && strcmp(set, "C") != 0 && strcmp(set, "POSIX") != 0;
    }
    if (!any || setenv("LANGUAGE", name, 1) != 0) return false;
    bindtextdomain(DOMAIN, folder);
    bind_textdomain_codeset(DOMAIN, "UTF-8");
    bindtextdomain("libc", folder);       /* where it has none: what strerror says is in our catalog */
    return *dgettext(DOMAIN, "") != '\0'; /* its header */
}

bool mg_terminal_utf8(void) {
    /* Asked of a locale of our own, since changing the program's would change how it reads and writes numbers. */
    locale_t ours = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = ours && strcmp(nl_langinfo_l(CODESET, ours), "UTF-8") == 0;
    if (ours) freelocale(ours);
    return utf8;
}

static int vformat(char *text, size_t size, const char *format, va_list arguments) MG_PRINTF(3, 0);
static int count(char *text, size_t size, int64_t n, const char *noun);

bool mg_language_begin(const char *asked, int n, const char *const *folders) {
    const char *list = asked ? asked : asked_by_environment();
    for (; *list; list += *list == ':') {
        size_t length = strcspn(list, ":");
        char name[sizeof language];
        folder_name(list, length, name, sizeof name);
        list += length;
        if (is_english(name)) return true;
        const char *folder = find_catalog(name, n, folders);
        if (!folder || !use(name, folder)) continue;
        ascii = !mg_terminal_utf8();
        for (char *c = name; *c; c++)
            if (*c == '_') *c = '-';
        snprintf(language, sizeof language, "%s", name);
        mg_set_wording(vformat, count);
        return true;
    }
    return false;
}

const char *mg_language(void) {
    return language;
}

bool mg_language_is_english(void) {
    return strcmp(language, "en") == 0;
}

/* ---- Words ---- */

/* The linker's symbols: string constants lie between them (end(3)). */
extern const char __executable_start[], edata[];

static bool is_constant(const char *text) {
    return (uintptr_t)text >= (uintptr_t)__executable_start && (uintptr_t)text < (uintptr_t)edata;
}

/* The system's reasons that files and processes meet; others stay English. */
static const char *const reasons[] = {N_("No such file or directory"),
                                      N_("Permission denied"),
                                      N_("No space left on device"),
                                      N_("Is a directory"),
                                      N_("Not a directory"),
                                      N_("File exists"),
                                      N_("File name too long"),
                                      N_("File too large"),
                                      N_("Read-only file system"),
                                      N_("Input/output error"),
                                      N_("Cannot allocate memory"),
                                      N_("Broken pipe"),
                                      N_("Too many open files"),
                                      N_("Too many levels of symbolic links"),
                                      N_("Operation not permitted"),
                                      N_("Disk quota exceeded"),
                                      N_("Resource temporarily unavailable"),
                                      N_("Success")};

/* strerror's text is a constant of the C library's, known by its place. */
static bool is_reason(const char *text) {
    enum { MOST_ERRORS = 256 };
    for (int number = 0; number < MOST_ERRORS; number++)
        if (strerrordesc_np(number) == text) return true;
    return false;
}

const char *mg_words(const char *text) {
    if (mg_language_is_english() || !text || !*text) return text;
    if (!is_constant(text)) {
        for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
            if (strcmp(text, reasons[i]) == 0 && is_reason(text)) return dgettext(DOMAIN, text);
        return text;
    }
    return dgettext(DOMAIN, text);
}

static size_t in_ascii(const char *text, char *room, size_t size) {
    size_t at = 0, n = 1;
    for (; *text && at + 8 < size; text += n) {
        const char one[2] = {*text, '\0'}, *shown = (unsigned char)*text < 128 ? one : mg_ascii_of(text, &n);
        if (shown == one) n = 1;
        at += (size_t)snprintf(room + at, size - at, "%s", shown);
    }
    room[at] = '\0';
    return at;
}

const char *mg_terminal_words(const char *text, char *room, size_t size) {
    const char *words = mg_words(text);
    if (!ascii || words == text) return words;
    in_ascii(words, room, size);
    return room;
}

static const char *words_of(const char *text, const void *user) {
    (void)user;
    return mg_words(text);
}

/* What the library makes its sentences with, and mg_printf. */
static int vformat(char *text, size_t size, const char *format, va_list arguments) {
    const mg_wording wording = {words_of, NULL, ascii};
    return mg_vwords(text, size, &wording, format, arguments);
}

/* mg_count's texts are in the catalog as "%lld step", "%lld steps". */
static int count(char *text, size_t size, int64_t n, const char *noun) {
    char one[96], more[96], words[192];
    snprintf(one, sizeof one, "%%lld %s", noun);
    snprintf(more, sizeof more, "%%lld %ss", noun);
    const char *format = dngettext(DOMAIN, one, more, (unsigned long)n);
    if (ascii) in_ascii(format, words, sizeof words), format = words;
    const char *after = strstr(format, "%lld");
    if (!after) return snprintf(text, size, "%lld %s", (long long)n, noun);
    return snprintf(text, size, "%.*s%lld%s", (int)(after - format), format, (long long)n, after + strlen("%lld"));
}

static void print(FILE *out, const char *format, va_list arguments) MG_PRINTF(2, 0);
static void print(FILE *out, const char *format, va_list arguments) {
    char text[8192];
    if (mg_language_is_english())
        vfprintf(out, format, arguments);
    else if (vformat(text, sizeof text, format, arguments) >= 0)
        fputs(text, out);
}

void mg_fprintf(FILE *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print(out, format, arguments);
    va_end(arguments);
}

void mg_printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print(stdout, format, arguments);
    va_end(arguments);
}
