// Counts of n * 1024 bytes, as a space of kernels: each choice is a macro that is written in front of this text.
//
//   TABLES   tables of counts that take turns, so that equal bytes in a row do not wait for each other: 1, 2, 4, 8
//   WORD     bytes that are read at once: 1, 4 or 8
//   AHEAD    1: the next word is read before the bytes of this one are counted

#include <stdint.h>
#include <string.h>

#ifndef TABLES
#define TABLES 4
#endif
#ifndef WORD
#define WORD 8
#endif
#ifndef AHEAD
#define AHEAD 0
#endif

#if WORD == 1
typedef uint8_t word;
#elif WORD == 4
typedef uint32_t word;
#else
typedef uint64_t word;
#endif

#define ALL _Pragma("GCC unroll 64")
#define STEP (WORD > TABLES ? WORD : TABLES)

void histogram(long n, const uint8_t *x, int32_t *counts) {
    uint32_t table[TABLES][256];
    memset(table, 0, sizeof(table));
    const uint8_t *end = x + n * 1024;
#if AHEAD
    word next;
    memcpy(&next, x, WORD);
#endif
    for (; x < end; x += STEP)
        ALL for (int part = 0; part < STEP; part += WORD) {
            word here;
#if AHEAD
            here = next;
            const uint8_t *from = x + part + WORD;
            memcpy(&next, from < end ? from : x, WORD);
#else
            memcpy(&here, x + part, WORD);
#endif
            ALL for (int byte = 0; byte < WORD; byte++)
                table[(part + byte) % TABLES][(uint8_t)(here >> (8 * byte))]++;
        }
    for (int value = 0; value < 256; value++) {
        uint32_t sum = 0;
        for (int each = 0; each < TABLES; each++)
            sum += table[each][value];
        counts[value] = (int32_t)sum;
    }
}
