// 3 x 3 convolution of 4 channels into 4, with a border of zeros, as a space of kernels: each choice is a macro
// that is written in front of this text.
//
//   WIDTH    floats in one vector;  VECTORS: vectors of a row of the image that are held;  ROWS: rows that are held
//   OUTPUTS  channels of the result that are computed together: 1, 2 or 4
//
// The image is copied into a buffer with its border and read there. Sums of OUTPUTS * ROWS * VECTORS vectors stay
// in registers; a vector that is read serves all of OUTPUTS.

#include <string.h>

#ifndef WIDTH
#define WIDTH 16
#endif
#ifndef VECTORS
#define VECTORS 2
#endif
#ifndef ROWS
#define ROWS 2
#endif
#ifndef OUTPUTS
#define OUTPUTS 4
#endif

#define MOST 192
#define COLUMNS (WIDTH * VECTORS)
#define STRIDE (MOST + 2 + COLUMNS)
#define ALL _Pragma("GCC unroll 64")

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

static float around[4][MOST + 2 + ROWS][STRIDE];

static inline __attribute__((always_inline)) void block(
    long n, long row, long column, int output, const float *w, float *y
) {
    vec sum[OUTPUTS][ROWS][VECTORS];
    ALL for (int o = 0; o < OUTPUTS; o++)
        ALL for (int r = 0; r < ROWS; r++)
            ALL for (int v = 0; v < VECTORS; v++)
                sum[o][r][v] = (vec){0};
    for (int c = 0; c < 4; c++)
        ALL for (int line = 0; line < ROWS + 2; line++)
            ALL for (int q = 0; q < 3; q++)
                ALL for (int v = 0; v < VECTORS; v++) {
                    vec here = *(const vec *)&around[c][row + line][column + q + v * WIDTH];
                    ALL for (int p = 0; p < 3; p++)
                        if (line - p >= 0 && line - p < ROWS)
                            ALL for (int o = 0; o < OUTPUTS; o++)
                                sum[o][line - p][v] += here * w[(((output + o) * 4 + c) * 3 + p) * 3 + q];
                }
    ALL for (int o = 0; o < OUTPUTS; o++)
        for (int r = 0; r < ROWS && row + r < n; r++) {
            float *to = y + ((output + o) * n + row + r) * n + column;
            if (column + COLUMNS <= n)
                ALL for (int v = 0; v < VECTORS; v++)
                    *(vec *)(to + v * WIDTH) = sum[o][r][v];
            else
                memcpy(to, sum[o][r], (n - column) * sizeof(float));
        }
}

void conv2d(long n, const float *x, const float *w, float *y) {
    for (int c = 0; c < 4; c++) {
        memset(around[c][0], 0, sizeof(around[c][0]));
        for (long i = 0; i < n; i++) {
            float *to = around[c][i + 1];
            to[0] = 0.0f;
            memcpy(to + 1, x + (c * n + i) * n, n * sizeof(float));
            memset(to + n + 1, 0, (1 + COLUMNS) * sizeof(float));
        }
        memset(around[c][n + 1], 0, ROWS * sizeof(around[c][0]));
    }
    for (long row = 0; row < n; row += ROWS)
        for (long column = 0; column < n; column += COLUMNS)
            for (int output = 0; output < 4; output += OUTPUTS)
                block(n, row, column, output, w, y);
}
