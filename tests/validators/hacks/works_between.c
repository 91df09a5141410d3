// Says done, sleeps as if at rest, and works between two calls. Only without the filters can it wake by itself.

#define AFTER raw(SYS_nanosleep, (long)(long[]){0, 3000000}, 0, 0, 0, 0, 0), spin(20000000)
#include "own_loop.h"
