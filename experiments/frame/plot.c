/* The pictures as PNG and SVG files: drawn by gnuplot under another name, kept when they are whole. */
#include "plot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const char *file_name(mg_lab *lab, const lab_block *block, bool png) {
    return lab_format(lab, "%s.%s", block->kind == LAB_BLOCK_HEATMAP ? block->heatmap->name : block->figure->name,
                      png ? "png" : "svg");
}

static void plot_picture(FILE *pipe, const lab_block *block, const char *temporary, bool png) {
    bool heat = block->kind == LAB_BLOCK_HEATMAP;
    lab_canvas canvas = heat ? lab_heat_canvas(block->heatmap) : lab_figure_canvas(block->figure);
    if (png)
        fprintf(pipe,
                "set terminal pngcairo noenhanced size %d,%d fontscale 2 linewidth 2 pointscale 2 font 'Sans,12' "
                "background '#FFFFFF'\n",
                2 * canvas.width, 2 * canvas.height);
    else
        fprintf(pipe, "set terminal svg noenhanced size %d,%d dynamic font 'sans-serif,16' background '#FFFFFF'\n",
                canvas.width, canvas.height);
    fprintf(pipe, "set output '%s'\n", temporary);
    if (heat)
        lab_heat_plot(pipe, block->heatmap, png);
    else
        lab_figure_plot(pipe, block->figure);
    fputs("unset output\n", pipe);
}

/* Whether a picture's file has the end that its format demands: gnuplot does not notice a full disk. */
static bool is_whole(int folder, const char *name, bool png) {
    static const char png_end[] = "IEND\xAE\x42\x60\x82", svg_end[] = "</svg>";
    char tail[16] = {0};
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return false;
    bool long_enough = lseek(file, -(off_t)(sizeof tail - 1), SEEK_END) >= 0;
    ssize_t n = long_enough ? read(file, tail, sizeof tail - 1) : 0;
    close(file);
    if (png) return n >= 8 && memcmp(tail + n - 8, png_end, 8) == 0;
    return strstr(tail, svg_end) != NULL;
}

/* The picture takes its name when it is whole, and is removed otherwise, with an older one that it was to replace. */
static bool keep_picture(int folder, const char *temporary, const char *name, bool png, bool drawn) {
    if (drawn && is_whole(folder, temporary, png) && renameat(folder, temporary, folder, name) == 0) return true;
    unlinkat(folder, temporary, 0);
    unlinkat(folder, name, 0);
    return false;
}

/* `wanted` false: none of an earlier run stays beside these numbers. */
static bool draw(mg_lab *lab, lab_gnuplot *p, const lab_block *block, bool wanted) {
    bool drawn = wanted && lab_gnuplot_start(p);
    const char *name[2];
    char *temporary[2];
    for (int png = 0; png < 2; png++) {
        name[png] = file_name(lab, block, png);
        temporary[png] = mg_temporary_path(name[png], NULL);
        if (!temporary[png]) MG_FAIL(MG_FAILURE_MEMORY, "out of memory for a picture's name");
    }
    if (drawn && block->kind == LAB_BLOCK_FIGURE) {
        lab_figure_data(p->pipe, block->figure);
    } else if (drawn) {
        lab_heat_data(p->pipe, block->heatmap);
    }
    if (drawn) {
        for (int png = 1; png >= 0; png--) plot_picture(p->pipe, block, temporary[png], png);
        drawn = lab_gnuplot_end(p);
    }
    bool kept[2];
    for (int png = 0; png < 2; png++) {
        kept[png] = keep_picture(p->folder, temporary[png], name[png], png, drawn);
        mg_free(temporary[png]);
    }
    return kept[0] && kept[1];
}

mg_status lab_draw_pictures(mg_lab *lab, mg_error *error) {
    if (!lab_gnuplot_is_installed()) {
        fputs("maskgrad: gnuplot is not installed: the numbers are written, the pictures are not "
              "(Debian's package is gnuplot-nox)\n",
              stderr);
        return MG_OK;
    }
    lab_gnuplot p = {.folder = open(lab->settings.out_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (p.folder < 0)
        return mg_error_set(error, MG_ERR_IO, "%s cannot be opened: %s", lab->settings.out_dir, strerror(errno));
    /* A gnuplot that ends early must not end us with it: its exit status says so. */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    lab->pictures = true;
    for (int i = 0; i < lab->blocks.n; i++) {
        const lab_block *block = lab->blocks.item[i];
        if (block->kind != LAB_BLOCK_FIGURE && block->kind != LAB_BLOCK_HEATMAP) continue;
        lab->pictures = draw(lab, &p, block, lab->pictures);
    }
    sigaction(SIGPIPE, &before, NULL);
    close(p.folder);
    if (lab->pictures) return MG_OK;
    return mg_error_set(error, MG_ERR_IO,
                        "gnuplot failed: the numbers in %s are written, not all pictures are (is the disk full?)",
                        lab->settings.out_dir);
}
