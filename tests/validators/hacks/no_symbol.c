// Exports another name.

#include "hack.h"

void attention(long n) {
    (void)n, (void)honest, (void)slurp;
}
