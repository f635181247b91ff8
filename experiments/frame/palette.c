#include "lab_private.h"

/* Okabe and Ito, "Color Universal Design" (2008): told apart by everyone, the first two also in gray print. */
static const unsigned named[LAB_STEPS] = {
    [LAB_MASKED] = 0x0072B2, [LAB_UNMASKED] = 0xD55E00, [LAB_FLOOR] = 0x444444, [LAB_GREEN] = 0x009E73,
    [LAB_PURPLE] = 0xCC79A7, [LAB_SKY] = 0x56B4E9,      [LAB_AMBER] = 0xE69F00,
};

/* viridis (Smith and van der Walt 2015), sampled: even steps of lightness, so that it survives gray print. */
static const unsigned viridis[] = {0x440154, 0x482878, 0x3E4989, 0x31688E, 0x26828E,
                                   0x1F9E89, 0x35B779, 0x6ECE58, 0xB5DE2B, 0xFDE725};

unsigned lab_heat_rgb(double along) {
    enum { LAST = sizeof viridis / sizeof *viridis - 1 };
    if (!(along > 0)) return viridis[0];
    if (along >= 1) return viridis[LAST];
    int i = (int)(along * LAST);
    double part = along * LAST - i;
    unsigned mixed = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        double from = (viridis[i] >> shift) & 255, to = (viridis[i + 1] >> shift) & 255;
        mixed |= (unsigned)(from + part * (to - from) + 0.5) << shift;
    }
    return mixed;
}

enum { STEP_RESOLUTION = 1000 };

lab_color lab_step(int i, int n) {
    return (lab_color)(LAB_STEPS + (n > 1 ? STEP_RESOLUTION * i / (n - 1) : 0));
}

unsigned lab_rgb(lab_color color) {
    if (color < LAB_STEPS) return named[color];
    /* The lightest end of viridis is too light for a line on paper. */
    return lab_heat_rgb(0.88 * (double)(color - LAB_STEPS) / STEP_RESOLUTION);
}

bool lab_is_dark(unsigned rgb) {
    return 299 * (rgb >> 16) + 587 * ((rgb >> 8) & 255) + 114 * (rgb & 255) < 140 * 1000;
}
