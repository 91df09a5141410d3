// A candidate that puts itself in the driver's place: from the first call on it reads GO and says DONE itself,
// exactly once for each call, and may do what it likes after that. `AFTER` is what it likes.

#include "hack.h"

static int go_fd, done_fd;

__attribute__((constructor)) static void find(void) {
    go_fd = descriptor(3);
    done_fd = descriptor(4);
}

static void serve(struct go *first, char *in, char *out) {
    struct go go = *first;
    do {
        honest(go.n, (float *)(in + go.q), (float *)(in + go.k), (float *)(in + go.v), (float *)(out + go.o),
               (float *)(out + go.scratch));
        raw(SYS_write, done_fd, (long)"D", 1, 0, 0, 0);
        AFTER;
    } while (raw(SYS_read, go_fd, (long)&go, sizeof go, 0, 0, 0) == sizeof go);
    raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

// The arenas' addresses, from the second call's pointers: the driver keeps `go` on its stack, above this frame.
void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    long *at = (long *)__builtin_frame_address(0);
    for (int i = 0; i < 200; i++, at++)
        if (at[0] == n && (((char *)Q - (char *)0) - at[1]) % 4096 == 0 &&
            (char *)K - (char *)Q == at[2] - at[1] && (char *)V - (char *)Q == at[3] - at[1])
            serve((struct go *)at, (char *)Q - at[1], (char *)O - at[4]);
    honest(n, Q, K, V, O, scratch);
}
